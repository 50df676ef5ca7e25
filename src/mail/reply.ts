/**
 * What a server said, and what became of a recipient because of it (RFC 5321 §4.2, RFC 3463).
 */

/** An SMTP reply: code, enhanced status code when the text carries one, and the text without either. */
export interface SmtpReply {
  readonly code: number
  /** `4.7.1`; absent when the server sent none. */
  readonly status?: string | undefined
  readonly text: string
}

/** Where in the conversation something happened. */
export type Stage =
  | 'route' // before any network: configuration, transport error:
  | 'dns'
  | 'connect'
  | 'greeting'
  | 'ehlo'
  | 'starttls'
  | 'auth'
  | 'mail'
  | 'rcpt'
  | 'data'
  | 'body'
  | 'end-of-data'
  | 'queue' // decided by the queue itself: expiry, operator

/**
 * Postfix's DSN value: made where the outcome is seen, it travels unchanged to the log, the history and the notice.
 */
export interface DeliveryStatus {
  /** Enhanced status code, always well formed: `2.0.0`, `4.4.1`, `5.1.1`. */
  readonly status: string
  /** For people: `host mx.example[192.0.2.1] said: 450 4.2.1 busy (in reply to RCPT TO command)`. One line, no controls. */
  readonly reason: string
  /** The server's reply as received (lines joined by a blank, controls masked), when a server replied. */
  readonly reply?: string | undefined
  /** Name of the server that replied, for Remote-MTA. */
  readonly remoteMta?: string | undefined
  readonly stage: Stage
}

const ENHANCED = /^([245])\.(\d{1,3})\.(\d{1,3})$/

/** Is this a well-formed enhanced status code (RFC 3463)? */
export const isEnhancedStatus = (text: string): boolean => ENHANCED.test(text)

/**
 * The status that counts for a reply (postfix smtp_chat): the server's own when its class matches the code, else
 * class.0.0; anything that is no 2xx, 4xx or 5xx is a protocol error.
 */
export function statusOf(reply: SmtpReply): string {
  const kind = Math.trunc(reply.code / 100)
  if (kind !== 2 && kind !== 4 && kind !== 5) return '4.5.0'
  if (reply.status !== undefined && isEnhancedStatus(reply.status) && reply.status.startsWith(`${kind}.`)) return reply.status
  return `${kind}.0.0`
}

/** Splits `450 4.2.1 busy` into its parts; undefined when it does not begin with a reply code. */
export function parseReply(text: string): SmtpReply | undefined {
  const match = /^(\d{3})(?:[ -](?:([245]\.\d{1,3}\.\d{1,3})(?: |$))?(.*))?$/s.exec(text)
  if (match === null) return undefined
  return { code: Number(match[1]), status: match[2], text: match[3] ?? '' }
}

/** The reply as one line of text. */
export const formatReply = (reply: SmtpReply): string =>
  [String(reply.code), reply.status, reply.text].filter((part) => part !== undefined && part !== '').join(' ')

/** Remote text made fit for a log line, a header or a terminal: every control character becomes `?`. */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
export const harmless = (text: string): string => text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, '?')
