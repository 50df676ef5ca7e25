/** SMTP replies and delivery status of recipients (RFC 5321 §4.2, RFC 3463). */
import type { Duration } from '../system/clock.ts'
import type { TlsFacts } from './tls-facts.ts'

/** An SMTP reply: code, enhanced status code (if the server sent one), and the remaining text. */
export interface SmtpReply {
  readonly code: number
  /** Enhanced status code such as `4.7.1`; absent when the server sent none. */
  readonly status?: string | undefined
  readonly text: string
  /**
   * The limit of this relay that refuses mail for now: the disk, or the limit of the queue, of a share in it, or of the messages of a share that
   * are held back, or a quota.
   */
  readonly limit?: 'disk' | 'queue' | 'share' | 'held' | 'quota' | undefined
  /** Time after which a quota has room. Absent for mail that it never has room for, and for other replies. */
  readonly retryAfter?: Duration | undefined
}

/** The step of an attempt that an outcome came from, in the order of a session (RFC 5321 §3). */
export type Stage =
  | 'route' // before any use of the network: the configuration, or the transport `error:`
  | 'dns'
  | 'connect'
  | 'greeting'
  | 'ehlo'
  | 'starttls'
  | 'handshake' // TLS, and the certificate of the host
  | 'auth'
  | 'mail'
  | 'rcpt'
  | 'data'
  | 'body'
  | 'cancel' // none: the submitter has cancelled the message
  | 'end-of-data'
  | 'queue' // decided by the queue itself: expiry, operator

/** Status of a recipient after an attempt (Postfix dsn.h). delivery/classify creates it; log, history and notice use it unchanged. */
export interface DeliveryStatus {
  /** Enhanced status code, well formed: `2.0.0`, `4.4.1`, `5.1.1`. */
  readonly status: string
  /**
   * Reason for people, such as `host mx.example[192.0.2.1] said: 450 4.2.1 busy (in reply to RCPT TO command)`. One line without
   * control characters.
   */
  readonly reason: string
  /** The server's reply as received, with lines joined by spaces and control characters masked. Absent when no server replied. */
  readonly reply?: string | undefined
  /** Name of the server that replied, for Remote-MTA. */
  readonly remoteMta?: string | undefined
  readonly stage: Stage
  /** TLS of the session with the host; absent when no host was chosen. */
  readonly tls?: TlsFacts | undefined
  /** Limit of attempts that this failure has reached: `maximal_delivery_attempts = 3`. */
  readonly limit?: string | undefined
}

/** Host and address as a reason of delivery names them, before any text of the host. */
const HOST = /^(?:[^:]*? )?(?:to|host|with|server) ([^\s[\]]+\[[\da-fA-F:.]+\])/

/** The host that a failure is about, as `mx.example[192.0.2.1]`; null when its reason names none. */
export const hostOf = ({ reason }: Pick<DeliveryStatus, 'reason'>): string | null => HOST.exec(reason)?.[1] ?? null

const ENHANCED = /^([245])\.(\d{1,3})\.(\d{1,3})$/

/** True for a well-formed enhanced status code (RFC 3463 §2). */
export const isEnhancedStatus = (text: string): boolean => ENHANCED.test(text)

/**
 * Enhanced status of a reply (Postfix smtp_chat.c). The server's status is used when its class matches the reply code, otherwise
 * class.0.0. Codes other than 2xx, 4xx and 5xx give 4.5.0 (protocol error).
 */
export function statusOf(reply: SmtpReply): string {
  const kind = Math.trunc(reply.code / 100)
  if (kind !== 2 && kind !== 4 && kind !== 5) return '4.5.0'
  if (reply.status !== undefined && isEnhancedStatus(reply.status) && reply.status.startsWith(`${kind}.`)) return reply.status
  return `${kind}.0.0`
}

/** Parses a reply such as `450 4.2.1 busy`. Undefined without a reply code. */
export function parseReply(text: string): SmtpReply | undefined {
  const match = /^(\d{3})(?:[ -](?:([245]\.\d{1,3}\.\d{1,3})(?: |$))?(.*))?$/s.exec(text)
  if (match === null) return undefined
  return { code: Number(match[1]), status: match[2], text: match[3] ?? '' }
}

/** Formats a reply on one line. */
export const formatReply = ({ code, status = '', text }: SmtpReply): string =>
  `${code}${status === '' ? '' : ` ${status}`}${text === '' ? '' : ` ${text}`}`

/**
 * Control characters, and characters that change or hide what is displayed: format characters (bidirectional controls, joiners,
 * tags), line and paragraph separators, and the Hangul fillers, which are blank letters.
 */
export const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/gu

/** Matches most text in SMTP, which has none of CONTROLS, in a fraction of the time. */
const PRINTABLE_ASCII = /^[ -~]*$/

/** Masks remote text for the log, a header or a terminal: each character of CONTROLS becomes `?`. */
export const maskControls = (text: string): string => (PRINTABLE_ASCII.test(text) ? text : text.replace(CONTROLS, '?'))

/** Text for a reply, which an operator or a policy server wrote: each control character becomes a blank (Postfix smtpd_check_reject). */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
export const blankControls = (text: string): string => text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, ' ')

const escapeUnits = (character: string): string =>
  Array.from({ length: character.length }, (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')

/**
 * Escapes the characters of CONTROLS in JSON text, where JSON.stringify leaves most of them unescaped. The text must be without
 * its line end, which would be escaped too.
 */
export const escapeControls = (json: string): string => json.replace(CONTROLS, escapeUnits)
