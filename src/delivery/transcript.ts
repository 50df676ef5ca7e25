/** Record of one SMTP session with one host. The session writes it, and classify.ts classifies it. */
import type { QueueTime } from '../system/clock.ts'
import type { Stage } from '../mail/smtp-reply.ts'
import type { LeasedRecipient } from '../mail/message.ts'
import type { ServerReply } from './reply-reader.ts'
import type { SaslChallenge } from './sasl-challenge.ts'

/** The remote server, with the facts that reasons mention. */
export interface Peer {
  readonly name: string
  readonly address: string
  readonly port: number
}

/** Reason why a session failed or was not started. */
export type SessionFailure =
  | { readonly kind: 'unreachable'; readonly why: string }
  /** A 4xx or 5xx reply where the session requires 2xx. */
  | {
      readonly kind: 'refused'
      readonly stage: Stage
      readonly reply: ServerReply
      /** Reason that the server stated before it refused an access token. */
      readonly challenge?: SaslChallenge | undefined
    }
  | { readonly kind: 'lost' | 'timeout' | 'aborted'; readonly stage: Stage }
  /** A reply with invalid syntax or at an impossible position. */
  | { readonly kind: 'protocol-error'; readonly stage: Stage; readonly what: string }
  /** The host uses the relay's own name in its EHLO reply. */
  | { readonly kind: 'loop' }
  /** The TLS handshake failed. */
  | { readonly kind: 'tls'; readonly why: string }
  /** The certificate of the host is not what the terms of TLS require. */
  | { readonly kind: 'certificate'; readonly why: string }
  | { readonly kind: 'tls-not-offered' }
  /** The certificate has to be verified with this issuer (PEM), in another handshake. */
  | { readonly kind: 'anchor'; readonly pem: string }
  /** DANE forbids mail to the host, or cannot be applied. */
  | { readonly kind: 'dane'; readonly why: string }
  /** The MTA-STS policy of the next hop does not name the host. */
  | { readonly kind: 'sts-mismatch'; readonly domain: string; readonly id: string }
  /** smtp_tls_wrappermode without a mandatory TLS level. */
  | { readonly kind: 'tls-level'; readonly level: string }
  | { readonly kind: 'auth-unavailable'; readonly why: string }
  /** The message needs SMTPUTF8, which the host does not support. */
  | { readonly kind: 'no-smtputf8' }
  /** The host does not take the deliver-by time of the message, of which `left` seconds are left; `minimum` is absent without DELIVERBY. */
  | { readonly kind: 'no-deliver-by'; readonly left: number; readonly minimum: number | undefined }
  | { readonly kind: 'too-big'; readonly size: number; readonly limit: number }

export interface Transcript {
  readonly recipients: readonly LeasedRecipient[]
  /** Time when MAIL was sent; undefined when MAIL was not sent. */
  readonly mailAt?: QueueTime | undefined
  readonly mail?: ServerReply | undefined
  /** Replies to RCPT, by position of the recipient; undefined without a reply. */
  readonly rcpt: readonly (ServerReply | undefined)[]
  readonly data?: ServerReply | undefined
  /** Replies to the final dot: a single one or, with LMTP, one for each accepted recipient in order. */
  readonly end: readonly (ServerReply | undefined)[]
  readonly failure?: SessionFailure | undefined
  /** True when the final dot was sent and got no reply: the host may have the message. */
  readonly possiblySent: boolean
  /** Set when the content could not be read, as in ContentRead. */
  readonly unreadable?: { readonly why: string; readonly lasting: boolean; readonly chunk?: number | undefined } | undefined
  /** True when the lease of this node ended before MAIL, which was not sent. */
  readonly leaseEnded?: true | undefined
  /** True when the cached connection was already closed. Nothing was sent in this session. */
  readonly stale: boolean
  /** True when the host supports DSN (RFC 3461). */
  readonly dsn: boolean
  /** True when the mail has BY with the mode N, and the host does not support DELIVERBY (RFC 2852). */
  readonly deliverByEnds: boolean
  /** True when the host supports 8BITMIME (RFC 6152). */
  readonly eightBit: boolean
  /** True when the content is sent with BDAT (RFC 3030). */
  readonly chunking: boolean
}
