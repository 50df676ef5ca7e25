/** Targets: where the events of a subscription are sent. */
import { targetKind } from '../config/values/tables/event-tables.ts'
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

export interface Targets {
  readonly web: SendEvents
  readonly file: SendEvents
  readonly stdout: SendEvents
}

/** Sends events to the target that the settings name. */
export const toTarget =
  ({ web, file, stdout }: Targets): SendEvents =>
  (consignment) => {
    switch (targetKind(consignment.settings.to)) {
      case 'stdout':
        return stdout(consignment)
      case 'file':
        return file(consignment)
      case 'none':
      case 'web':
        return web(consignment)
    }
  }
