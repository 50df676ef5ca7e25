/**
 * Commits outcomes to the store, and repeats each commit until it succeeds, because mail without a recorded outcome is delivered
 * again. Events are emitted only after the commit.
 */
import { keptFrom } from '../../bounce/notice-writer.ts'
import type { SchedulerState } from './scheduler-state.ts'
import type { AttemptResult } from '../../delivery/delivery-agent.ts'
import type { DeliveryStatus } from '../../mail/smtp-reply.ts'
import type { Outcome } from '../../outbox/event-data.ts'
import type { Job } from './turns/job-queue.ts'
import { KeptSessions, withoutDialogues } from '../../delivery/kept-sessions.ts'
import { expire, settle, whyNoNotice, type LifecycleFacts } from './lifecycle.ts'
import type { DeliveryRequest, Message } from '../../mail/message.ts'
import type { Settlement } from '../../store/recorded-outcomes.ts'

type State = Pick<
  SchedulerState,
  'store' | 'clock' | 'events' | 'recorder' | 'storeHealth' | 'policies' | 'noticeSettings' | 'notices' | 'draw'
>

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

interface Recording {
  readonly returned: boolean
  readonly written: (() => void) | undefined
}

export class SettlementWriter {
  readonly #state: State
  readonly #sessions = new KeptSessions()

  constructor(state: State) {
    this.#state = state
  }

  /**
   * Records an attempt. `returned` is true when the remote server refused the mail for congestion while other deliveries are in
   * progress; the attempt is then not a step of the retry schedule. `written` as in QueueStore.settle.
   */
  async attempted(job: Job, result: AttemptResult, { returned, written }: Recording): Promise<Settlement> {
    const { request } = job
    const settlement = this.#sessions.refer(settle(request, result, job, { ...this.#facts(request), returned }), request, result)
    const emit = (): void => {
      const { attempts, recipients: settled } = settlement
      this.#state.events.emit({ kind: 'attempted', request, result: withoutDialogues(result), attempts, settled })
    }
    await this.#settle({ request, settlement, result }, { emit, written })
    return settlement
  }

  /** Expires mail without an attempt. `fallback` is the status of recipients that were never attempted. */
  async expired(request: DeliveryRequest, fallback: DeliveryStatus, written?: () => void): Promise<void> {
    const settlement = expire(request, this.#state.clock.now(), fallback, this.#facts(request))
    await this.#settle({ request, settlement, result: null }, { emit: () => undefined, written })
  }

  /** Quarantines a message that cannot be read. No DSN is sent, because a local failure must not bounce mail. */
  async unreadable(message: Message, why: string): Promise<void> {
    const { store, events, storeHealth } = this.#state
    await storeHealth.retryUntilCommitted(() => store.quarantine(message.id, why))
    events.emit({ kind: 'quarantined', message, why })
  }

  #facts({ destination, message }: DeliveryRequest): LifecycleFacts {
    const { policies, noticeSettings, draw } = this.#state
    return { policy: policies().forMail(destination, message), notices: noticeSettings(), draw }
  }

  async #settle(
    outcome: Pick<Outcome, 'request' | 'result'> & { readonly settlement: Settlement },
    { emit, written }: { readonly emit: () => void; readonly written: (() => void) | undefined },
  ): Promise<void> {
    const { store, clock, events, recorder, storeHealth, noticeSettings, notices } = this.#state
    const { request, settlement } = outcome
    const { message } = request
    const why = whyNoNotice(request, settlement, noticeSettings().rules)
    const recorded = recorder.settlement(outcome, why)
    const kept = keptFrom(clock.now(), noticeSettings())
    const complete = recorded === undefined && kept.keepUntil === undefined ? settlement : { ...settlement, ...kept, events: recorded }
    const result = await storeHealth.retryUntilCommitted(() => store.settle(complete, written))
    if (settlement.sessions !== undefined) this.#sessions.committed(settlement.sessions)
    emit()
    const expired = settlement.recipients.filter((one) => one.state === 'expired').map((one) => one.recipient)
    const unattempted = outcome.result === null ? { request, settled: settlement.recipients } : null
    if (expired.length > 0) events.emit({ kind: 'expired', message, forced: request.forcedExpire, recipients: expired, unattempted })
    if (why !== undefined) events.emit({ kind: 'notice-dropped', message, why })
    if (result.noticeDue) notices.noticeDue(message.id)
    if (result.removed) events.emit({ kind: 'removed', message })
  }
}
