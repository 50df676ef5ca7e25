/**
 * What happened in one conversation with one host, as plain facts. The session writes it, classify.ts judges it.
 */
import type { Instant } from '../mail/clock.ts'
import type { Stage } from '../mail/reply.ts'
import type { LeasedRecipient } from '../queue/message.ts'
import type { ServerReply } from './reply-reader.ts'

/** The far side as reasons name it. */
export interface Peer {
  readonly name: string
  readonly address: string
  readonly port: number
}

/** Why a conversation did not begin, broke off, or was not worth beginning. */
export type Trouble =
  | { readonly kind: 'unreachable'; readonly why: string }
  /** A 4xx or 5xx where the conversation needed a 2xx to go on. */
  | { readonly kind: 'refused'; readonly stage: Stage; readonly reply: ServerReply }
  | { readonly kind: 'lost' | 'timeout' | 'aborted'; readonly stage: Stage }
  /** A reply that breaks grammar or sequence. */
  | { readonly kind: 'nonsense'; readonly stage: Stage; readonly what: string }
  /** The host calls itself by our name. */
  | { readonly kind: 'loop' }
  /** The handshake failed, or the certificate is not the right one. */
  | { readonly kind: 'tls'; readonly why: string }
  | { readonly kind: 'tls-not-offered' }
  | { readonly kind: 'auth-unavailable'; readonly why: string }
  /** The message needs SMTPUTF8 and the host does not know it. */
  | { readonly kind: 'no-smtputf8' }
  | { readonly kind: 'too-big'; readonly size: number; readonly limit: number }

export interface Transcript {
  readonly recipients: readonly LeasedRecipient[]
  /** When MAIL was sent; undefined when it never came to that. */
  readonly mailAt?: Instant | undefined
  readonly mail?: ServerReply | undefined
  /** By position of the recipient; undefined when no reply came. */
  readonly rcpt: readonly (ServerReply | undefined)[]
  readonly data?: ServerReply | undefined
  /** Replies to the final dot: one for all, or with LMTP one for each accepted recipient in turn. */
  readonly end: readonly (ServerReply | undefined)[]
  readonly trouble?: Trouble | undefined
  /** The final dot was sent and not answered: the far side may have the message. */
  readonly possiblySent: boolean
  /** Our own content could not be read. `lasting`: it will not get better. */
  readonly unreadable?: { readonly why: string; readonly lasting: boolean } | undefined
  /** The kept connection was dead: nothing was said in this conversation. */
  readonly stale: boolean
  /** The host announced DSN (RFC 3461). */
  readonly dsn: boolean
}
