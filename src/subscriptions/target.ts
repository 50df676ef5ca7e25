/** Targets: where the events of a subscription are sent. */
import type { SentEvent } from './event-request.ts'
import type { SubscriptionSettings } from '../store/outbox/subscription.ts'
import type { TargetAnswer } from './answer-decision.ts'

export interface Consignment {
  readonly events: readonly SentEvent[]
  readonly settings: SubscriptionSettings
  /** Secrets that sign now, the newest first. */
  readonly secrets: readonly string[]
  readonly name: string
  /** Aborts the try when the daemon stops. */
  readonly signal: AbortSignal
}

/** Sends events to a target. Never rejects: a failure is an answer. */
export type SendEvents = (consignment: Consignment) => Promise<TargetAnswer>
