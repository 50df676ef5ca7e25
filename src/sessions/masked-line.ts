/**
 * Lines of an SMTP session without secrets and content, for people: the dialogue of a failed delivery, a trace, a recording. A client's line is
 * shown only as far as its command is known, so that a password, a token or a line of a content that comes out of sequence is never shown. Pure.
 */
import { escapeControls } from '../mail/smtp-reply.ts'

/** In place of what must not be shown. */
export const MASKED = '****'

/** Characters of the longest line; a longer one is cut. */
export const LONGEST_LINE = 512

/** Mechanisms of SASL that are named. Another one may be a password that a person has typed. */
const MECHANISM = /^(?:PLAIN|LOGIN|CRAM-MD5|DIGEST-MD5|XOAUTH2|OAUTHBEARER|EXTERNAL|GSSAPI|NTLM|ANONYMOUS|SCRAM-SHA-(?:1|256)(?:-PLUS)?)$/i

const ATTRIBUTES = /^[A-Z]+=\S*(?:\s+[A-Z]+=\S*)*$/i

/** Arguments of commands that are shown as they are; those of other commands are masked. */
const ARGUMENTS: Readonly<Record<string, RegExp>> = {
  EHLO: /^\S{1,255}$/,
  HELO: /^\S{1,255}$/,
  LHLO: /^\S{1,255}$/,
  MAIL: /^FROM:\s?<[^<>]*>(?:\s+[A-Z0-9-]+(?:=[^\s=]+)?)*$/i,
  RCPT: /^TO:\s?<[^<>]*>(?:\s+[A-Z0-9-]+(?:=[^\s=]+)?)*$/i,
  BDAT: /^\d{1,15}(?:\s+LAST)?$/i,
  ETRN: /^\S{1,255}$/,
  XCLIENT: ATTRIBUTES,
  XFORWARD: ATTRIBUTES,
  DATA: /^$/,
  STARTTLS: /^$/,
  RSET: /^$/,
  QUIT: /^$/,
  NOOP: /^$/,
  HELP: /^$/,
  VRFY: /^$/,
  EXPN: /^$/,
}

export const bytesText = (bytes: number): string => `[${String(bytes).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')} byte${bytes === 1 ? '' : 's'}]`

/** A line of a client that is no step of a login. */
export function maskedCommand(line: string): string {
  const [, verb = '', argument = ''] = /^(\S+)(?: +(.*))?$/s.exec(line.trimEnd()) ?? []
  if (verb.toUpperCase() === 'AUTH') return maskedAuth(argument)
  const shown = ARGUMENTS[verb.toUpperCase()]
  if (shown === undefined) return bytesText(Buffer.byteLength(line))
  return shown.test(argument) ? line.trimEnd() : `${verb} ${MASKED}`
}

function maskedAuth(argument: string): string {
  const [mechanism = '', ...rest] = argument.split(/ +/)
  const named = MECHANISM.test(mechanism) ? mechanism.toUpperCase() : MASKED
  return rest.length === 0 ? `AUTH ${named}` : `AUTH ${named} ${MASKED}`
}

/** A line of a server. A challenge of a login (RFC 4954 §4) is masked unless it is the reason of a refusal, in words. */
export const maskedReply = (line: string, challenge?: string): string => (/^334(?: |-|$)/.test(line) ? `334 ${challenge ?? MASKED}` : line)

const PRINTABLE_ASCII = /^[ -~]*$/

/** A line without control characters, and not longer than LONGEST_LINE. */
export function shownLine(text: string): string {
  const line = PRINTABLE_ASCII.test(text) ? text : escapeControls(text)
  return line.length <= LONGEST_LINE ? line : `${line.slice(0, LONGEST_LINE - 1).toWellFormed()}…`
}
