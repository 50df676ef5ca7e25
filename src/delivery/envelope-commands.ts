/**
 * MAIL and RCPT with their parameters, as far as the host announced them (RFC 5321 §4.1.1, RFC 1870, 3461, 6152, 6531).
 * DSN parameters are each recipient's own.
 */
import { isInternational } from '../mail/address.ts'
import type { Envelope } from '../mail/envelope.ts'
import type { LeasedRecipient, Message } from '../queue/message.ts'

/** What a host announced in its reply to EHLO: keywords in upper case with their parameters. */
export type Extensions = ReadonlyMap<string, string>

/** Reads the lines of an EHLO reply after the first, without codes. */
export function parseExtensions(lines: readonly string[]): Extensions {
  return new Map(
    lines.map((line) => {
      const [keyword = '', ...parameters] = line.trim().split(/[\s=]+/)
      return [keyword.toUpperCase(), parameters.join(' ')]
    }),
  )
}

/** xtext (RFC 3461 §4). */
const xtext = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- everything but printable ASCII without + and = is encoded
  text.replace(/[^\u0021-\u002a\u002c-\u003c\u003e-\u007e]/gu, (char) =>
    [...Buffer.from(char, 'utf8')].map((byte) => `+${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
  )

/** The 7-bit form of an internationalized original recipient (RFC 6533 §3). */
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

/** Can the address stand between angle brackets without ending them, the line, or the path (RFC 5321 §4.1.2)? */
export function isSendable(address: string): boolean {
  const path = address.replace(/^"(?:[^"\\]|\\.)*"(?=@)/, 'quoted')
  // oxlint-disable-next-line no-control-regex -- control characters are what must not pass
  return !/[\u0000-\u001f\u007f]/.test(address) && !/[\s<>]/.test(path)
}

/** Does the message need a host that knows SMTPUTF8? Asking for it is not enough: something must be in UTF-8. */
export function needsUtf8(message: Message, recipients: readonly LeasedRecipient[], beginning: Uint8Array): boolean {
  if (isInternational(message.sender) || recipients.some(({ address }) => isInternational(address))) return true
  return message.smtputf8 && hasUtf8Header(beginning)
}

function hasUtf8Header(content: Uint8Array): boolean {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  const end = bytes.indexOf('\r\n\r\n')
  return bytes.subarray(0, end < 0 ? bytes.length : end).some((byte) => byte > 0x7f)
}

export function mailCommand(message: Message, utf8: boolean, extensions: Extensions): string {
  const { sender, size, bodyType, ret, envid }: Pick<Envelope, 'sender' | 'ret' | 'envid'> & Pick<Message, 'size' | 'bodyType'> = message
  let command = `MAIL FROM:<${sender}>`
  if (extensions.has('SIZE')) command += ` SIZE=${size}`
  if (bodyType !== undefined && extensions.has('8BITMIME')) command += ` BODY=${bodyType.toUpperCase()}`
  if (utf8) command += ' SMTPUTF8'
  if (ret !== undefined && extensions.has('DSN')) command += ` RET=${ret.toUpperCase()}`
  if (envid !== undefined && extensions.has('DSN')) command += ` ENVID=${xtext(envid)}`
  return command
}

export function rcptCommand({ address, notify, orcpt }: LeasedRecipient, extensions: Extensions): string {
  let command = `RCPT TO:<${address}>`
  if (!extensions.has('DSN')) return command
  if (notify !== undefined) command += ` NOTIFY=${(notify === 'never' ? notify : notify.join(',')).toUpperCase()}`
  if (orcpt !== undefined) command += ` ORCPT=${encodeOrcpt(orcpt)}`
  return command
}
