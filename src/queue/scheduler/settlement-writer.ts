/**
 * Commits outcomes to the store, and repeats each commit until it succeeds, because mail without a recorded outcome is delivered
 * again. Events are emitted only after the commit.
 */
import type { AttemptResult } from '../../delivery/delivery-agent.ts'
import type { Clock } from '../../system/clock.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { Outcome } from '../../outbox/event-data.ts'
import type { EventRecorder } from '../../outbox/event-recorder.ts'
import type { Events } from '../../telemetry/events.ts'
import type { Job } from './job-queue.ts'
import { expire, settle, whyNoNotice, type LifecycleFacts } from './lifecycle.ts'
import type { NoticeSettings } from '../../bounce/notice-writer.ts'
import type { DestinationPolicies } from '../../config/destination-policies.ts'
import type { DeliveryRequest, Message, MessageId } from '../../mail/message.ts'
import type { StoreHealth } from '../../store/store-health.ts'
import type { QueueStore, Settlement } from '../../store/queue-store.ts'

export interface SettlementWriterDeps {
  readonly store: QueueStore
  readonly clock: Clock
  readonly events: Events
  readonly recorder: EventRecorder
  readonly storeHealth: StoreHealth
  readonly policies: () => DestinationPolicies
  readonly notices: () => NoticeSettings
  /** Returns a number in [0, 1) that depends only on the name; see Random.draw. */
  readonly draw: (key: string) => number
  /** Called when a notice is due for the message. */
  readonly noticeDue: (message: MessageId) => void
}

export const ADMINISTRATIVELY_EXPIRED: DeliveryStatus = {
  status: '4.7.0',
  reason: 'message is administratively expired',
  stage: 'queue',
}

export const NEVER_STARTED: DeliveryStatus = {
  status: '4.4.7',
  reason: 'the message expired before a delivery attempt could be made',
  stage: 'queue',
}

export class SettlementWriter {
  readonly #deps: SettlementWriterDeps

  constructor(deps: SettlementWriterDeps) {
    this.#deps = deps
  }

  /**
   * Records an attempt. `returned` is true when the remote server refused the mail for congestion while other deliveries are in
   * progress; the attempt is then not a step of the retry schedule.
   */
  async attempted(job: Job, result: AttemptResult, returned: boolean): Promise<Settlement> {
    const { request } = job
    const settlement = settle(request, result, job, { ...this.#facts(request), returned })
    await this.#settle({ request, settlement, result }, () => {
      const { attempts, recipients: settled } = settlement
      this.#deps.events.emit({ kind: 'attempted', request, result, attempts, settled })
    })
    return settlement
  }

  /** Expires mail without an attempt. `fallback` is the status of recipients that were never attempted. */
  async expired(request: DeliveryRequest, fallback: DeliveryStatus): Promise<void> {
    const settlement = expire(request, this.#deps.clock.now(), fallback, this.#facts(request))
    await this.#settle({ request, settlement, result: null }, () => undefined)
  }

  /** Quarantines a message that cannot be read. No DSN is sent, because a local failure must not bounce mail. */
  async unreadable(message: Message, why: string): Promise<void> {
    const { store, events, storeHealth } = this.#deps
    await storeHealth.retryUntilCommitted(() => store.quarantine(message.id, why))
    events.emit({ kind: 'quarantined', message, why })
  }

  #facts({ destination }: DeliveryRequest): LifecycleFacts {
    const { policies, notices, draw } = this.#deps
    return { policy: policies().for(destination), notices: notices(), draw }
  }

  async #settle(outcome: Pick<Outcome, 'request' | 'result'> & { readonly settlement: Settlement }, emit: () => void): Promise<void> {
    const { store, events, recorder, storeHealth, notices, noticeDue } = this.#deps
    const { request, settlement } = outcome
    const { message } = request
    const why = whyNoNotice(request, settlement, notices().rules)
    const recorded = recorder.settlement(outcome, why)
    const complete = recorded === undefined ? settlement : { ...settlement, events: recorded }
    const result = await storeHealth.retryUntilCommitted(() => store.settle(complete))
    emit()
    const expired = settlement.recipients.filter((one) => one.state === 'expired').map((one) => one.recipient)
    const unattempted = outcome.result === null ? { request, settled: settlement.recipients } : null
    if (expired.length > 0) events.emit({ kind: 'expired', message, forced: request.forcedExpire, recipients: expired, unattempted })
    if (why !== undefined) events.emit({ kind: 'notice-dropped', message, why })
    if (result.noticeDue) noticeDue(message.id)
    if (result.removed) events.emit({ kind: 'removed', message })
  }
}
