/**
 * Operations on messages and destinations. The owner of the queue performs them: the daemon on request, or a command that holds
 * the lock. Transactions are short, so that mail does not wait. Each operation adds one record to the audit log.
 */
import { queueIdOf, type DestinationName } from '../mail/message.ts'
import type { Actor, AuditId, AuditRecord } from '../store/records/audit-log.ts'
import type { LiveDestination } from './scheduler/destination.ts'
import type { Duration } from '../system/clock.ts'
import type { Random } from '../system/random.ts'
import { shellWord } from '../system/shell-word.ts'
import { OperationJobs, type JobDeps } from './operation-jobs.ts'
import {
  assertClass,
  type BulkOperation,
  type CommandedUndo,
  type OperationSummary,
  type Progress,
  type UndoSummary,
} from './operation-request.ts'
import type { SchedulerControl } from './operation-rounds.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import { recordedDuration } from '../system/duration.ts'
import { Erasing } from './erasing.ts'
import { Resending, type MailEntry } from './resending.ts'
import { followWallClock } from './wall-clock-step.ts'
import { cancelMessages, type Cancelled } from './cancellation.ts'
import { rescheduled, type NewTimes } from './rescheduling.ts'
import type { ListedMessage } from '../store/queue-reader.ts'
import { changeable, passedOver, selectedRounds, withPassedOver, type SelectedMessage } from './selected-messages.ts'

/** An operator's request to suspend a destination. */
export interface SuspensionRequest extends Actor {
  /** Time after which the suspension ends by itself; null for never. */
  readonly duration: Duration | null
  readonly reason: string | null
}

export class Operations {
  readonly jobs: OperationJobs
  readonly scheduler: SchedulerControl
  readonly #deps: JobDeps

  readonly #resending: Resending | null
  readonly #erasing: Erasing | null

  /** `mail` and `random` are those of a daemon. */
  constructor({ mail, random, ...deps }: JobDeps & { readonly mail?: MailEntry | undefined; readonly random?: Random | undefined }) {
    this.#deps = deps
    this.scheduler = deps.scheduler
    this.jobs = new OperationJobs(deps)
    this.#resending = mail === undefined ? null : new Resending({ ...deps, ...mail, jobs: this.jobs })
    this.#erasing = random === undefined ? null : new Erasing({ ...deps, random, jobs: this.jobs })
  }

  /** Erases addresses of the history. Throws StoreUnavailable where no daemon runs, which goes on after a crash. */
  get erasing(): Erasing {
    if (this.#erasing === null) throw new StoreUnavailable('no daemon runs here, which erases addresses')
    return this.#erasing
  }

  /** Sends mail of the history again. Throws StoreUnavailable where no relay takes mail. */
  get resending(): Resending {
    if (this.#resending === null) throw new StoreUnavailable('no daemon runs here, which takes mail')
    return this.#resending
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

  async suspend(name: DestinationName, { duration, reason, ...actor }: SuspensionRequest): Promise<void> {
    const until = duration === null ? null : this.#deps.clock.now() + duration
    await this.#deps.scheduler.suspend(name, { by: actor.who, until, reason })
    await this.#audit({ ...actor, action: 'suspend', arguments: `${shellWord(name)}${suspensionOptions(duration, reason)}`, reason })
  }

  async resume(name: DestinationName, actor: Actor): Promise<void> {
    await this.#deps.scheduler.resume(name, actor.who)
    await this.#audit({ ...actor, action: 'resume', arguments: shellWord(name) })
  }

  /** Suspends all destinations of a provider, also later ones. */
  async suspendProvider(name: string, { duration, reason, ...actor }: SuspensionRequest): Promise<void> {
    const until = duration === null ? null : this.#deps.clock.now() + duration
    await this.#deps.scheduler.suspendProvider(name, { by: actor.who, until, reason })
    await this.#audit({ ...actor, action: 'suspend', arguments: `provider ${name}${suspensionOptions(duration, reason)}`, reason })
  }

  /** Ends a suspension of a provider. Destinations that are suspended themselves stay so. */
  async resumeProvider(name: string, actor: Actor): Promise<void> {
    await this.#deps.scheduler.resumeProvider(name, actor.who)
    await this.#audit({ ...actor, action: 'resume', arguments: `provider ${name}` })
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
    return this.#deps.store.records.audit.add({ ...record, at: this.#deps.clock.now(), changed: 1 })
  }

  /** Selects the messages of an operation without changing them. */
  async #rehearse(request: Omit<BulkOperation, 'dryRun'>, progress: (soFar: Progress) => void): Promise<OperationSummary> {
    assertClass(this.#deps.policies().classes, request)
    const unknown: string[] = []
    let [matched, inTransfer] = [0, 0]
    const through = await this.#deps.reader.lastId()
    const transfers = new Set(await this.#deps.scheduler.transfers())
    let passed = await passedOver(this.#deps, { ...request, through })
    for await (const selected of selectedRounds(this.#deps, { ...request, through }, unknown)) {
      const round = changeable(request, selected)
      matched += round.length
      passed = withPassedOver(passed, request, selected)
      inTransfer += round.filter(({ id }) => transfers.has(id)).length
      progress({ matched, changed: 0, unknown, ids: round.map(queueIdOf) })
    }
    return { matched, changed: 0, inTransfer, unknown, ...passed }
  }
}

const suspensionOptions = (duration: Duration | null, reason: string | null): string =>
  [duration === null ? '' : ` --for=${recordedDuration(duration)}`, reason === null ? '' : ` ${shellWord(`--reason=${reason}`)}`].join('')
