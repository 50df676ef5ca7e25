/**
 * Brings outcomes to the store, however long that takes: without them mail would be delivered again. Says what became
 * of the mail once it is on disk, never before.
 */
import type { AttemptResult } from '../delivery/delivery-agent.ts'
import type { Clock } from '../mail/clock.ts'
import type { DeliveryStatus } from '../mail/reply.ts'
import type { Events } from '../telemetry/events.ts'
import type { Job } from './destination.ts'
import { expire, settle, whyNobodyIsTold, type LifecycleFacts } from './lifecycle.ts'
import type { DeliveryRequest, DestinationName, Message, MessageId } from './message.ts'
import type { StoreGuard } from './store-guard.ts'
import type { QueueStore, Settlement } from './store.ts'

export interface SettlingParts {
  readonly store: QueueStore
  readonly clock: Clock
  readonly events: Events
  readonly guard: StoreGuard
  readonly factsFor: (destination: DestinationName) => LifecycleFacts
  /** A message owes its sender a notice. */
  readonly owes: (message: MessageId) => void
}

export const ADMINISTRATIVELY_EXPIRED: DeliveryStatus = {
  status: '4.7.0',
  reason: 'message is administratively expired',
  stage: 'queue',
}

export const NEVER_STARTED: DeliveryStatus = {
  status: '4.4.7',
  reason: 'the message could not be tried before its time in the queue was over',
  stage: 'queue',
}

export class Settling {
  readonly #parts: SettlingParts

  constructor(parts: SettlingParts) {
    this.#parts = parts
  }

  /** An attempt was made. `returned`: refused for congestion while others are served, it just waits its turn. */
  async attempted(job: Job, result: AttemptResult, returned: boolean): Promise<Settlement> {
    const { request } = job
    const settlement = settle(request, result, job, { ...this.#parts.factsFor(request.destination), returned })
    await this.#settle(request, settlement, () => {
      this.#parts.events.emit({ kind: 'attempted', request, result, attempts: settlement.attempts })
    })
    return settlement
  }

  /** The mail is given up without an attempt; `fallback` is said of what was never tried. */
  async expired(request: DeliveryRequest, fallback: DeliveryStatus): Promise<void> {
    const { clock, factsFor } = this.#parts
    await this.#settle(request, expire(request, clock.now(), fallback, factsFor(request.destination)), () => undefined)
  }

  /** The mail cannot be read: it is set aside, and nobody is told, for our own trouble bounces nobody's mail. */
  async unreadable(message: Message, why: string): Promise<void> {
    const { store, events, guard } = this.#parts
    await guard.insist(() => store.quarantine(message.id, why))
    events.emit({ kind: 'quarantined', message, why })
  }

  async #settle(request: DeliveryRequest, settlement: Settlement, tell: () => void): Promise<void> {
    const { store, events, guard, factsFor, owes } = this.#parts
    const { message } = request
    const result = await guard.insist(() => store.settle(settlement))
    tell()
    const expired = settlement.recipients.filter((one) => one.state === 'expired').map((one) => one.recipient)
    if (expired.length > 0) events.emit({ kind: 'expired', message, forced: request.forcedExpire, recipients: expired })
    const silence = whyNobodyIsTold(request, settlement, factsFor(request.destination))
    if (silence !== undefined) events.emit({ kind: 'notice-dropped', message, why: silence })
    if (result.indebted) owes(message.id)
    if (result.removed) events.emit({ kind: 'removed', message })
  }
}
