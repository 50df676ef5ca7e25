/**
 * Operations on many messages as jobs: each has an id and a durable record from its begin on, which every node sees, and can be cancelled
 * and undone from any node. The rounds of a job run at the node that began it, whether or not its client waits.
 */
import { errorMessage } from '../system/caught-error.ts'
import { SECOND, sleep, type Duration } from '../system/clock.ts'
import { TaskSet } from '../system/task-set.ts'
import { queueIdOf, type MessageId } from '../mail/message.ts'
import type { AuditEntry, AuditId, NewOperation, OperationEnd } from '../store/records/audit-log.ts'
import type { PlacedPage } from '../store/queue-reader.ts'
import { Fenced, StoreFailed, StoreUnavailable } from '../store/queue-store.ts'
import { assertNotOutdated } from './operation-plan.ts'
import {
  ANY_QUEUE,
  assertClass,
  type Cancellation,
  type OperationRequest,
  type OperationSummary,
  type Progress,
  type UndoRequest,
} from './operation-request.ts'
import { carryOut, endsAttempts, type RoundDeps } from './operation-rounds.ts'
import { orderedTime } from './rescheduling.ts'
import { operationText } from './operation-words.ts'
import { NotUndoable, undoingOf, undoUntil, type Retention } from './operation-undo.ts'
import { passedOver, selectedRounds, withUnchanged, type RoundsOf, type SelectedMessage } from './selected-messages.ts'

export interface JobDeps extends RoundDeps {
  /** Times for which operations can be undone. */
  readonly retention: () => Retention
  /** Called after each round with the number of its messages. The operation waits for the promise, so that mail has priority. */
  readonly throttle?: ((messages: number) => Promise<void>) | undefined
}

/** An operation that was begun. */
export interface StartedOperation<S extends OperationSummary = OperationSummary> {
  readonly id: AuditId
  /** Resolves at the end. Rejects with the error that ended it, or with OperationCancelled. */
  readonly ended: Promise<S>
}

/** The operation was cancelled (EX_TEMPFAIL). */
export class OperationCancelled extends Error {
  override readonly name = 'OperationCancelled'
  readonly exitCode = 75
}

/** The process leaves an operation to the next one, which goes on with it (EX_TEMPFAIL). Nothing is recorded. */
export class OperationLeft extends Error {
  override readonly name = 'OperationLeft'
  readonly exitCode = 75
}

/** Number of changed messages whose claimed mail is taken back at once, after a cancellation. */
const CHANGED_AT_ONCE = 1_000

/** Pause between two tries to record the end of an operation. */
const PAUSE: Duration = SECOND

interface Job extends Omit<OperationRequest, 'selection'> {
  readonly selection: RoundsOf
  readonly expected: number | null
  readonly undoes: AuditId | null
}

const noProgress = (): void => undefined

function unchanged(messages: readonly SelectedMessage[], changed: readonly string[]): readonly SelectedMessage[] {
  const ids = new Set(changed)
  return messages.filter((one) => !ids.has(queueIdOf(one)))
}

export class OperationJobs {
  readonly #deps: JobDeps
  /** Running operations, and ends that are not recorded yet. */
  readonly #tasks = new TaskSet((error) => {
    throw error
  })
  #isStopped = false

  constructor(deps: JobDeps) {
    this.#deps = deps
  }

  /**
   * Begins an operation and resolves when its record is on disk. Rejects with RequestRepeated when the request was carried out before, and
   * with PlanOutdated and UnknownClass.
   */
  async start(request: OperationRequest, progress: (soFar: Progress) => void = noProgress): Promise<StartedOperation> {
    assertClass(this.#deps.policies().classes, request)
    if (request.plan !== null) await assertNotOutdated(this.#deps, request, request.plan)
    return this.#begin({ ...request, expected: request.plan?.matched ?? null, undoes: null }, progress)
  }

  /** Begins the undo of an operation: changes those of its messages that are still as it has placed them. Rejects with NotUndoable. */
  async undo(request: UndoRequest, progress: (soFar: Progress) => void = noProgress): Promise<StartedOperation> {
    const { reader, clock } = this.#deps
    const entry = await reader.records.audit.one(request.operation)
    if (entry === undefined) throw new NotUndoable(`there is no operation ${request.operation}`)
    const operation = undoingOf(entry, clock.now())
    const selection = { kind: 'placed', by: entry.id } as const
    const terms = { ...ANY_QUEUE, plan: null, expected: entry.changed, undoes: entry.id }
    return this.#begin({ ...request, ...terms, operation, selection }, progress)
  }

  /**
   * Cancels an operation of any node. Messages of the rounds that are committed stay changed; claimed mail of the last one may not be taken
   * back yet, and is then taken back here.
   */
  async cancel(id: AuditId, by: string): Promise<Cancellation> {
    const { store, reader, clock, scheduler } = this.#deps
    const entry = await reader.records.audit.one(id)
    if (entry === undefined) return 'unknown'
    const end = { state: 'cancelled', at: clock.now(), error: `cancelled by ${by}` } as const
    if (!(await store.records.audit.end(id, end))) return 'ended'
    if (!endsAttempts(entry.action)) return 'cancelled'
    for (let after: MessageId | null = 0; after !== null;) {
      const page: PlacedPage = await reader.placedBy(id, { after, limit: CHANGED_AT_ONCE })
      const messages = page.messages.map((one) => one.id)
      await scheduler.takeBack(messages, { rests: false })
      after = page.next
    }
    return 'cancelled'
  }

  /** Resolves when all operations have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#tasks.settled()
  }

  async #begin(job: Job, progress: (soFar: Progress) => void): Promise<StartedOperation> {
    const { clock, retention } = this.#deps
    const { operation: action, selection, who, requestId, reason, expected, undoes, request } = job
    const at = clock.now()
    const moment = { now: at, wall: clock.wall }
    const record = {
      at,
      who,
      requestId,
      action,
      arguments: selection.kind === 'placed' ? `undo of ${selection.by}` : operationText({ ...job, selection }, moment),
      reason,
      expected,
      undoUntil: undoUntil(job, retention(), moment),
      undoes,
      request,
    }
    return this.carry(record, (id) => this.#rounds(id, job, progress))
  }

  /**
   * Begins an operation that `work` carries out in rounds; `isStopped` tells it to end. Resolves when the record is on disk. Rejects with
   * RequestRepeated when the request was carried out before.
   */
  async carry<S extends OperationSummary>(
    record: NewOperation,
    work: (id: AuditId, isStopped: () => boolean) => Promise<S>,
  ): Promise<StartedOperation<S>> {
    return this.goOn(await this.#deps.store.records.audit.begin(record), work)
  }

  /** Goes on with an operation that has begun. */
  goOn<S extends OperationSummary>(id: AuditId, work: (id: AuditId, isStopped: () => boolean) => Promise<S>): StartedOperation<S> {
    const ended = this.#run(id, work)
    this.#tasks.add(ended.then(noProgress, noProgress))
    return { id, ended }
  }

  async #run<S extends OperationSummary>(id: AuditId, work: (id: AuditId, isStopped: () => boolean) => Promise<S>): Promise<S> {
    try {
      const summary = await work(id, () => this.#isStopped)
      const { matched, inTransfer, unknown } = summary
      const ended = await this.#end(id, { state: 'done', matched, inTransfer, unknown: unknown.length, error: null })
      // A call that is repeated because its answer was lost finds the operation done.
      if (!ended && (await this.#deps.reader.records.audit.one(id))?.state !== 'done') throw await this.cancelled(id)
      return summary
    } catch (error) {
      // Nothing is recorded for an operation that was cancelled, because it has ended, nor for one that goes on.
      if (!(error instanceof OperationCancelled) && !(error instanceof OperationLeft))
        this.#endLater(id, { state: 'failed', error: errorMessage(error) })
      throw error
    }
  }

  async #rounds(id: AuditId, job: Job, progress: (soFar: Progress) => void): Promise<OperationSummary> {
    const { reader, clock, throttle, scheduler } = this.#deps
    const through = job.plan?.through ?? (await reader.lastId())
    const unknown: string[] = []
    const ordered = job.release === null ? null : orderedTime(job.release, { now: clock.now(), wall: clock.wall })
    let [matched, changed, rounds] = [0, 0, 0]
    let inTransfer: readonly MessageId[] = []
    let passed = await passedOver(this.#deps, { ...job, through })
    for await (const messages of selectedRounds(this.#deps, { ...job, through }, unknown)) {
      matched += messages.length
      const carried = await carryOut(this.#deps, { ...job, through, ordered }, messages, { operation: id, at: clock.now(), matched })
      if (carried === null) throw await this.cancelled(id)
      changed += carried.ids.length
      if (job.operation === 'flush') passed = withUnchanged(passed, unchanged(messages, carried.ids))
      inTransfer = [...inTransfer, ...carried.inTransfer]
      rounds++
      progress({ matched, changed, unknown, ids: carried.ids })
      await throttle?.(messages.length)
    }
    // The transfers that earlier rounds have met may have ended.
    if (rounds > 1 && inTransfer.length > 0) ({ inTransfer } = await scheduler.takeBack(inTransfer, { rests: false }))
    return { matched, changed, inTransfer: inTransfer.length, unknown, ...passed }
  }

  /** The error of an operation that was ended by another call. */
  async cancelled(id: AuditId): Promise<OperationCancelled> {
    const entry: AuditEntry | undefined = await this.#deps.reader.records.audit.one(id)
    const { error = null, changed = 0 } = entry ?? {}
    return new OperationCancelled(`operation ${id} was ${error ?? 'ended'}; changed messages: ${changed}`)
  }

  #end(id: AuditId, end: Omit<OperationEnd, 'at'>): Promise<boolean> {
    return this.#deps.store.records.audit.end(id, { ...end, at: this.#deps.clock.now() })
  }

  /** Records the end as soon as the store can commit. The next opening of the queue records the end of an operation that has none. */
  #endLater(id: AuditId, end: Omit<OperationEnd, 'at'>): void {
    const record = async () => {
      for (;;) {
        try {
          return await this.#end(id, end)
        } catch (error) {
          if (!(error instanceof StoreUnavailable)) throw error
          if (this.#isStopped || error instanceof StoreFailed || error instanceof Fenced) return false
        }
        await sleep(this.#deps.clock, PAUSE)
      }
    }
    this.#tasks.add(record().then(noProgress))
  }
}
