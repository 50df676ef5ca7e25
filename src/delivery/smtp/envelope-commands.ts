/**
 * Builds MAIL and RCPT commands with the parameters that the host supports (RFC 5321 §4.1.1, RFC 1870, 2852, 3461, 6152, 6531, 6710). Each
 * recipient has its own DSN parameters.
 */
import { isInternational } from '../../mail/address.ts'
import type { Envelope } from '../../mail/envelope.ts'
import { headerLength } from '../../mail/headers.ts'
import type { LeasedRecipient, Message } from '../../mail/message.ts'

/** Extensions in a host's EHLO reply: upper-case keywords with their parameters. */
export type Extensions = ReadonlyMap<string, string>

/** Parses the lines of an EHLO reply after the first, without codes. Ignores `discarded`, in lower case (smtp_discard_ehlo_keywords). */
export function parseExtensions(lines: readonly string[], discarded: readonly string[] = []): Extensions {
  const extensions = lines.map((line) => {
    const [keyword = '', ...parameters] = line.trim().split(/[\s=]+/)
    return [keyword.toUpperCase(), parameters.join(' ')] as const
  })
  return new Map(extensions.filter(([keyword]) => !discarded.includes(keyword.toLowerCase())))
}

/** Encodes xtext (RFC 3461 §4). */
const xtext = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- everything but printable ASCII without + and = is encoded
  text.replace(/[^\u0021-\u002a\u002c-\u003c\u003e-\u007e]/gu, (char) =>
    [...Buffer.from(char, 'utf8')].map((byte) => `+${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  )

/** Encodes the 7-bit form of an internationalized original recipient (RFC 6533 §3). */
const unicodeXtext = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- as above, and the backslash that begins an escape
  text.replace(
    /[^\u0021-\u002a\u002c-\u003c\u003e-\u005b\u005d-\u007e]/gu,
    (char) => `\\x{${char.codePointAt(0)?.toString(16).toUpperCase()}}`,
  )

function encodeOrcpt(orcpt: string): string {
  const [type = '', ...rest] = orcpt.split(';')
  const address = rest.join(';')
  return `${type};${type.toLowerCase() === 'utf-8' ? unicodeXtext(address) : xtext(address)}`
}

/** True when the address contains nothing that could end its angle brackets or the line (RFC 5321 §4.1.2). */
export function isSendable(address: string): boolean {
  const path = address.replace(/^"(?:[^"\\]|\\.)*"(?=@)/, 'quoted')
  // oxlint-disable-next-line no-control-regex -- control characters are what must not pass
  return !/[\u0000-\u001f\u007f]/.test(address) && !/[\s<>]/.test(path)
}

/**
 * True when the message needs a host with SMTPUTF8: an address is international, or SMTPUTF8 was requested and the header
 * contains UTF-8. `beginning` is the first chunk of the content.
 */
export function needsUtf8(message: Message, recipients: readonly LeasedRecipient[], beginning: Uint8Array): boolean {
  if (isInternational(message.sender) || recipients.some(({ address }) => isInternational(address))) return true
  return message.smtputf8 && beginning.subarray(0, headerLength(beginning)).some((byte) => byte > 0x7f)
}

export function mailCommand(
  message: Message,
  { utf8, by, priority }: { readonly utf8: boolean; readonly by: string | undefined; readonly priority: number | null },
  extensions: Extensions,
): string {
  const { sender, size, bodyType, ret, envid }: Pick<Envelope, 'sender' | 'ret' | 'envid'> & Pick<Message, 'size' | 'bodyType'> = message
  let command = `MAIL FROM:<${sender}>`
  if (extensions.has('SIZE')) command += ` SIZE=${size}`
  if (bodyType !== undefined && extensions.has('8BITMIME')) command += ` BODY=${bodyType.toUpperCase()}`
  if (utf8) command += ' SMTPUTF8'
  if (ret !== undefined && extensions.has('DSN')) command += ` RET=${ret.toUpperCase()}`
  if (envid !== undefined && extensions.has('DSN')) command += ` ENVID=${xtext(envid)}`
  if (by !== undefined) command += ` BY=${by}`
  if (priority !== null && extensions.has('MT-PRIORITY')) command += ` MT-PRIORITY=${priority}`
  return command
}

export function rcptCommand({ address, notify, orcpt }: LeasedRecipient, extensions: Extensions): string {
  let command = `RCPT TO:<${address}>`
  if (!extensions.has('DSN')) return command
  if (notify !== undefined) command += ` NOTIFY=${(notify === 'never' ? notify : notify.join(',')).toUpperCase()}`
  if (orcpt !== undefined) command += ` ORCPT=${encodeOrcpt(orcpt)}`
  return command
}
