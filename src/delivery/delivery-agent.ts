/**
 * The DeliveryAgent port tries to deliver one request to its destination and returns an outcome for every recipient, or that nothing
 * was attempted. A network failure is an outcome; a rejection is a bug.
 */
import type { QueueTime } from '../system/clock.ts'
import type { SessionRecord } from '../sessions/session-recorder.ts'
import type { DeliveryStatus } from '../mail/smtp-reply.ts'
import type { DeliveryRequest, RecipientId } from '../mail/message.ts'

/** Result of one attempt for one recipient. */
export interface RecipientOutcome {
  readonly outcome: 'delivered' | 'deferred' | 'bounced'
  /** Status of the attempt. The log, the history, the queue and the notice share this object. */
  readonly status: DeliveryStatus
  /** True when the next hop supports DSN and received the request for success notices, so that it sends them (RFC 3461 §5.2.1). */
  readonly dsnPassedOn?: boolean | undefined
  /** True when the mail has BY with the mode N, and its next hop does not support DELIVERBY, so that it reports no delay (RFC 2852). */
  readonly deliverByEnds?: boolean | undefined
  /** True for a permanent failure that soft_bounce turned into a deferral; logged as SOFTBOUNCE. */
  readonly softBounce?: boolean | undefined
  /** The session of the outcome, where it is recorded (session_transcripts). */
  readonly session?: SessionRecord | undefined
  /** Index of the chunk of the content that the store could not return, when that is the only reason of the deferral. */
  readonly unreadChunk?: number | undefined
}

/**
 * Feedback about the destination as a whole, for its concurrency window (Postfix smtp_trouble.c):
 * - `negative`: a site-level failure;
 * - `positive`: a completed session, even if it refused some recipients;
 * - `none`: any other result.
 */
export type Feedback = 'positive' | 'negative' | 'none'

/**
 * Failure to log in at a configured next hop: `refused` credentials, or `missing` ones that the server requires. Mail is deferred,
 * and the operator has to correct smtp_sasl_password_maps.
 */
export type LoginFailure = 'refused' | 'missing'

/** Result of one attempt to deliver a request. */
export interface AttemptResult {
  /** One outcome for each recipient of the request. */
  readonly outcomes: ReadonlyMap<RecipientId, RecipientOutcome>
  readonly feedback: Feedback
  /**
   * The host asked for less mail (421, 4.3.2 or 4.4.5 at any stage, 4.7.0 before RCPT), which reduces the window. `early` means
   * at connect or greeting, before any command.
   */
  readonly congestion?: 'early' | 'late' | undefined
  /** Site-level status that caused `negative` feedback. It is shown for waiting mail. */
  readonly siteStatus?: DeliveryStatus | undefined
  /** Login failure at the last host tried; absent when the login succeeded or none was needed. */
  readonly login?: LoginFailure | undefined
  /** Name of the `[oauth.NAME]` table of the login at the last host tried; absent for another login, or none. */
  readonly oauth?: string | undefined
  /** `mx.example[192.0.2.1]:25`; null when no connection was made. */
  readonly relay: string | null
  /** Number of deliveries over this connection, including this one. */
  readonly connectionUse: number
  readonly times: AttemptTimes
  /** True when the connection ended after the final dot without a reply: the host may have the message. */
  readonly possiblySent?: boolean | undefined
  /** Reason why the content is permanently unreadable. The message must be quarantined. */
  readonly unreadable?: string | undefined
}

/**
 * Result of a delivery. `not-begun` means that this node's lease ended before the first mail transaction, or that the mail exchangers belong
 * to another provider than was known; `passed-over`, that no connection to any of its hosts was allowed (DeliveryOptions.connecting). In both
 * cases no remote server has received a part of the mail, and it may be delivered anew.
 */
export type Delivery = AttemptResult | 'not-begun' | 'passed-over'

/** A connection that begins, up to its end or to the end of the session's opening. */
export interface Connecting {
  /** Reports that the host has sent its greeting, of any code. */
  greeted(): void
  /** Called once, when the session is open or has failed. */
  ended(): void
}

/** Times of an attempt, in milliseconds since 1970. */
interface AttemptTimes {
  /** Time when the agent received the request. */
  readonly startedAt: QueueTime
  /** Time when MAIL was sent; equals endedAt when MAIL was not sent. */
  readonly transmittingAt: QueueTime
  readonly endedAt: QueueTime
}

/** Options that the scheduler passes for a delivery (Postfix CONNECTION_CACHE_README). */
export interface DeliveryOptions {
  /** True to keep the connection for the next delivery, because deliveries to this destination follow each other closely. */
  readonly keepConnection: boolean
  /**
   * Asked before a connection, with the provider of the mail exchangers (null for none): false when the delivery was begun under the limits of
   * another one, so that it must not begin. Absent where no limits are shared.
   */
  readonly admits?: ((provider: string | null) => boolean) | undefined
  /** Asked before each connection to an address: null when that host is passed over. Absent where connections are not limited. */
  readonly connecting?: ((address: string) => Connecting | null) | undefined
  /** Aborts the attempt when the grace period of a stopping daemon has ended. */
  readonly signal: AbortSignal
}

export interface DeliveryAgent {
  deliver(request: DeliveryRequest, options: DeliveryOptions): Promise<Delivery>
  /** Closes idle connections. Called once, after the last delivery. */
  close(): Promise<void>
}
