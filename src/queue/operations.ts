/**
 * Operations on messages and destinations. The owner of the queue performs them: the daemon on request, or a command that holds
 * the lock. Transactions are short, so that mail does not wait. Each operation adds one record to the audit log.
 */
import { queueIdOf, type DestinationName } from '../mail/message.ts'
import type { AuditId, AuditRecord } from '../store/audit-log.ts'
import type { LiveDestination } from '../store/destination-status.ts'
import type { Duration } from '../system/clock.ts'
import { shellWord } from '../system/shell-word.ts'
import { OperationJobs, type JobDeps } from './operation-jobs.ts'
import type { BulkOperation, CommandedUndo, OperationSummary, Progress, UndoSummary } from './operation-request.ts'
import type { SchedulerControl } from './operation-rounds.ts'
import { recordedDuration } from './operation-words.ts'
import { followWallClock } from './wall-clock-step.ts'
import { cancelMessages, type Cancelled } from './cancellation.ts'
import { rescheduled, type NewTimes } from './rescheduling.ts'
import type { ListedMessage } from '../store/queue-reader.ts'
import { passedOver, selectedRounds, withPassedOver, type SelectedMessage } from './selected-messages.ts'

/** An operator's request to suspend a destination. */
export interface SuspensionRequest {
  readonly by: string
  /** Time after which the suspension ends by itself; null for never. */
  readonly duration: Duration | null
  readonly reason: string | null
}

export class Operations {
  readonly jobs: OperationJobs
  readonly scheduler: SchedulerControl
  readonly #deps: JobDeps

  constructor(deps: JobDeps) {
    this.#deps = deps
    this.scheduler = deps.scheduler
    this.jobs = new OperationJobs(deps)
  }

  /** Performs an operation and calls `progress` after every round. Rejects with OperationCancelled. */
  async perform({ dryRun, ...request }: BulkOperation, progress: (soFar: Progress) => void = () => undefined): Promise<OperationSummary> {
    if (dryRun) return this.#rehearse(request, progress)
    const { ended } = await this.jobs.start({ ...request, reason: null, plan: null, request: null }, progress)
    return ended
  }

  /** Undoes an operation and calls `progress` after every round. Rejects with NotUndoable and OperationCancelled. */
  async undo(undo: CommandedUndo, progress: (soFar: Progress) => void = () => undefined): Promise<UndoSummary> {
    const { id, ended } = await this.jobs.undo({ ...undo, request: null }, progress)
    return { ...(await ended), id }
  }

  async suspend(name: DestinationName, { by, duration, reason }: SuspensionRequest): Promise<void> {
    const until = duration === null ? null : this.#deps.clock.now() + duration
    await this.#deps.scheduler.suspend(name, { by, until, reason })
    const options = [
      duration === null ? '' : ` --for=${recordedDuration(duration)}`,
      reason === null ? '' : ` ${shellWord(`--reason=${reason}`)}`,
    ]
    await this.#audit({ who: by, action: 'suspend', arguments: `${shellWord(name)}${options.join('')}`, reason })
  }

  async resume(name: DestinationName, who: string): Promise<void> {
    await this.#deps.scheduler.resume(name, who)
    await this.#audit({ who, action: 'resume', arguments: shellWord(name) })
  }

  /** Cancels messages at the request of their submitters; see cancelMessages. */
  cancel(messages: readonly SelectedMessage[], by: string): Promise<readonly Cancelled[]> {
    return cancelMessages(this.#deps, messages, by)
  }

  /** Gives a scheduled message other times. Resolves with false when it is not scheduled any more. */
  async reschedule(listed: Pick<ListedMessage, 'message' | 'recipients'>, times: NewTimes): Promise<boolean> {
    const { store, clock, policies, scheduler } = this.#deps
    const operation = rescheduled(listed, times, { now: clock.now(), policies: policies(), anyWaiting: false })
    const [result] = (await store.operate([{ message: listed.message.id, operation }])) ?? []
    if (result?.changed !== true) return false
    scheduler.workAdded(result.woken, { revive: false, scheduled: times.notBefore })
    return true
  }

  /** Computes the times of messages anew that clients have named as instants, after the wall clock was set. */
  clockStepped(): Promise<void> {
    return followWallClock(this.#deps)
  }

  /** Destinations in the scheduler's memory. */
  destinations(): readonly LiveDestination[] {
    return this.#deps.scheduler.snapshot()
  }

  /** Records an action on one destination. */
  #audit(record: Omit<AuditRecord, 'at' | 'changed'>): Promise<AuditId> {
    return this.#deps.store.auditLog.audit({ ...record, at: this.#deps.clock.now(), changed: 1 })
  }

  /** Selects the messages of an operation without changing them. */
  async #rehearse(request: Omit<BulkOperation, 'dryRun'>, progress: (soFar: Progress) => void): Promise<OperationSummary> {
    const unknown: string[] = []
    let [matched, inTransfer] = [0, 0]
    const through = await this.#deps.reader.lastId()
    const transfers = new Set(await this.#deps.scheduler.transfers())
    let passed = await passedOver(this.#deps, { ...request, through })
    for await (const round of selectedRounds(this.#deps, { ...request, through }, unknown)) {
      matched += round.length
      passed = withPassedOver(passed, request, round)
      inTransfer += round.filter(({ id }) => transfers.has(id)).length
      progress({ matched, changed: 0, unknown, ids: round.map(queueIdOf) })
    }
    return { matched, changed: 0, inTransfer, unknown, ...passed }
  }
}
