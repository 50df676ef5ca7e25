/**
 * The DeliveryAgent port: tries to hand one request to its destination and says what became of every recipient.
 * It never throws for anything the network can do: that is news, not an exception.
 */
import type { Duration, Instant } from '../mail/clock.ts'
import type { DeliveryStatus } from '../mail/reply.ts'
import type { DeliveryRequest, RecipientId } from '../queue/message.ts'

export interface RecipientOutcome extends DeliveryStatus {
  readonly outcome: 'delivered' | 'deferred' | 'bounced'
  /** The next hop announced DSN and was asked for success reports, so they are its business now (RFC 3461 §5.2.1). */
  readonly dsnPassedOn?: boolean | undefined
  /** Refused for good, but kept because of soft_bounce; logged as SOFTBOUNCE. */
  readonly softBounce?: boolean | undefined
}

/**
 * What the attempt says about the destination as a whole (postfix-semantics §4.3): `negative` for site-level trouble,
 * `positive` for an answered conversation whatever it said about recipients, `none` when it says nothing.
 */
export type Feedback = 'positive' | 'negative' | 'none'

export interface AttemptResult {
  /** One for each recipient of the request. */
  readonly outcomes: ReadonlyMap<RecipientId, RecipientOutcome>
  readonly feedback: Feedback
  /**
   * The far side asked for less (421 at any stage, 4.3.2, 4.4.5, or 4.7.0 before RCPT): lowers the window. `early` when
   * it was said at connect or greeting, before anything was handed over.
   */
  readonly congestion?: 'early' | 'late' | undefined
  /** The site-level status that feedback `negative` is about; what waiting mail will show. */
  readonly hopStatus?: DeliveryStatus | undefined
  /** `mx.example[192.0.2.1]:25`; null when no connection was made. */
  readonly relay: string | null
  /** How often this connection has been used, this time included. */
  readonly connectionUse: number
  readonly times: AttemptTimes
  /** Ended after the final dot without a reply: the far side may have it. */
  readonly possiblySent?: boolean | undefined
  /** The content cannot be read, and will not get better: the message is to be set aside. Says why. */
  readonly unreadable?: string | undefined
}

export interface AttemptTimes {
  /** The agent took the request. */
  readonly startedAt: Instant
  /** MAIL was sent; equals endedAt when it never came to that. */
  readonly transmittingAt: Instant
  readonly endedAt: Instant
}

/** Hints from the scheduler for the connection cache (postfix-semantics §4.10). */
export interface DeliveryOptions {
  /** Deliveries to this destination follow each other closely: keep the connection for the next. */
  readonly keepConnection: boolean
  /** Aborts when the daemon can wait no longer. */
  readonly signal: AbortSignal
}

export interface DeliveryAgent {
  deliver(request: DeliveryRequest, options: DeliveryOptions): Promise<AttemptResult>
  /** Closes idle connections; called at the end. */
  close(): Promise<void>
}

/** Total time of an attempt. */
export const attemptDuration = (times: AttemptTimes): Duration => Math.max(0, times.endedAt - times.startedAt)
