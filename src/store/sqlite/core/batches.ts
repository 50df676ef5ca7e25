/**
 * Runs calls in batches. Each batch is one transaction. A failing call does not roll back the other calls of its
 * batch. A full disk and an I/O error are distinguished from a bug. After an I/O error the store writes nothing more, because the
 * state of the disk is unknown until a restart.
 */
import Database from 'better-sqlite3'
import { ContentUnreadable } from '../../errors.ts'
import { StoreFailed, StoreUnavailable } from '../../queue-store.ts'
import type { Duration } from '../../../system/clock.ts'
import { contentBytes, roomOf, type Call, type Outcome } from '../../methods.ts'
import type { FileGuard } from '../file/file-guard.ts'
import { DUE_FROM, MOST_FRAMES } from '../file/checkpoint-pace.ts'
import { Checkpoints } from '../file/checkpoints.ts'
import { PAGE, type Room } from '../file/room.ts'
import type { StoreCore } from './store-core.ts'

/** Maximum number of calls in one transaction. */
export const BATCH = 128
/**
 * Number of calls and pages of content after which the size of the write-ahead log is checked again. Less than one transaction may
 * have, so that the log does not grow further by it; large, because SQLite compiles the check again at each use.
 */
const LOOK_EVERY = 32
/** Part of the reserve for the write-ahead log at a checkpoint. */
const FOR_LOG = 2 / 3
/** Free bytes from which on the log may grow further than the reserve has room for: twice those of the log, and of its pages. */
const FOR_LONG_LOG = 4 * MOST_FRAMES * PAGE
/** Part of the reserve for the contents in one transaction. */
const FOR_CONTENT = 1 / 3

interface Daemon {
  readonly files?: FileGuard
  /** Returns the time since any moment, in ms. */
  readonly now?: () => Duration
}

export class Batches {
  readonly #db: Database.Database
  readonly #core: StoreCore
  readonly #room: Room
  readonly #files: FileGuard | undefined
  readonly #checkpoints: Checkpoints
  readonly #contentLimit: number
  readonly #begin
  readonly #commit
  readonly #changes
  #seenChanges: number
  #broken: StoreFailed | null = null
  /** Calls and pages of content since the last look at the write-ahead log. */
  #sinceLook = 0

  /** `files` and `now` are those of a daemon: without `now`, checkpoints do not wait. */
  constructor(db: Database.Database, core: StoreCore, room: Room, { files, now }: Daemon = {}) {
    this.#files = files
    this.#db = db
    this.#core = core
    this.#room = room
    this.#checkpoints = new Checkpoints(db, {
      dueFrom: Math.min(DUE_FROM, Math.floor((room.reserveSize * FOR_LOG) / PAGE)),
      ...(now === undefined ? {} : { now }),
      hasRoom: () => room.forMail() >= FOR_LONG_LOG,
    })
    this.#contentLimit = room.reserveSize * FOR_CONTENT
    this.#begin = db.prepare('begin immediate')
    this.#commit = db.prepare('commit')
    this.#changes = db.prepare<[], number>('select total_changes()').pluck()
    this.#seenChanges = this.#changes.get() ?? 0
  }

  /**
   * Runs calls and returns one outcome per call, in order. A successful call is written to the log, which the caller syncs (durability); a failed
   * call has changed nothing.
   */
  run(calls: readonly Call[]): Outcome[] {
    try {
      this.#files?.assertInPlace()
    } catch (error) {
      return calls.map(() => failed(error))
    }
    const failure = this.#restoreReserve()
    if (failure !== null) return calls.map(() => failed(failure))
    const outcomes: Outcome[] = []
    for (let from = 0; from < calls.length;) {
      const to = this.#endOfBatch(calls, from)
      outcomes.push(...this.#together(calls.slice(from, to)))
      // A checkpoint after the last batch waits until the answers are sent.
      if (to < calls.length) this.checkpoint()
      from = to
    }
    return outcomes
  }

  /**
   * Returns the end (exclusive) of the batch that begins at `from`. Calls and bytes of content are limited, because the write-ahead
   * log grows by both before a checkpoint can run.
   */
  #endOfBatch(calls: readonly Call[], from: number): number {
    let bytes = 0
    for (let to = from; to < calls.length && to < from + BATCH; to++) {
      const call = calls[to]
      const added = call === undefined ? 0 : contentBytes(call)
      bytes += added
      if (bytes > this.#contentLimit && to > from) return to
      this.#sinceLook += 1 + Math.ceil(added / PAGE)
    }
    return Math.min(calls.length, from + BATCH)
  }

  #restoreReserve(): unknown {
    if (this.#broken !== null || !this.#room.isReserveReleased) return null
    try {
      this.#room.restoreReserve(this.#checkpoints)
      return null
    } catch (error) {
      return this.#scopeOf(error) === 'full' ? null : (this.#broken ?? error)
    }
  }

  /** Whether a row was changed since the last call of this method. A transaction without a changed row needs no sync. */
  takeChanged(): boolean {
    const changes = this.#changes.get() ?? 0
    const changed = changes !== this.#seenChanges
    this.#seenChanges = changes
    return changed
  }

  /** Lets every later call fail, because the state of the disk is unknown. */
  fail(failure: StoreFailed): void {
    this.#broken ??= failure
  }

  /**
   * Runs a checkpoint if one is due. Called after the answers of a batch are sent, because their calls become durable without
   * a checkpoint. Returns the failure after which no call succeeds; null when there is none.
   */
  checkpoint(): StoreFailed | null {
    const { fileErasure } = this.#core
    if (this.#broken !== null || (this.#sinceLook < LOOK_EVERY && !fileErasure.isRequested)) return null
    this.#sinceLook = 0
    try {
      if (fileErasure.isRequested) fileErasure.carryOut(this.#checkpoints)
      else this.#checkpoints.runIfDue()
    } catch (error) {
      if (this.#scopeOf(error) !== 'store') throw error
    }
    return this.#broken
  }

  #together(calls: readonly Call[]): Outcome[] {
    if (this.#broken !== null || this.#room.isReserveReleased) return calls.map((call) => this.#runInOwnTransaction(call))
    try {
      return this.#transaction(() => calls.map((call) => ({ ok: true, value: this.#core.run(call) })))
    } catch (error) {
      return this.#runWithSavepoints(calls, error)
    }
  }

  /** Repeats a batch that failed as a whole, with a savepoint before each call, so that only the failing calls are rejected. */
  #runWithSavepoints(calls: readonly Call[], error: unknown): Outcome[] {
    const scope = this.#scopeOf(error)
    if (scope === 'store') return calls.map(() => failed(this.#broken ?? error))
    if (scope === 'full' || calls.length === 1) return calls.map((call) => this.#runInOwnTransaction(call))
    try {
      return this.#transaction(() => calls.map((call) => this.#runAfterSavepoint(call)))
    } catch (second) {
      return this.#scopeOf(second) === 'store'
        ? calls.map(() => failed(this.#broken ?? second))
        : calls.map((call) => this.#runInOwnTransaction(call))
    }
  }

  /** Runs a call inside the current transaction after a savepoint. A failure rolls back this call only. */
  #runAfterSavepoint(call: Call): Outcome {
    // A failure drops all events that are not written.
    this.#core.events.write()
    this.#db.exec('savepoint one')
    try {
      const value = this.#core.run(call)
      this.#db.exec('release one')
      return { ok: true, value }
    } catch (error) {
      // Some errors make SQLite roll back the whole transaction, including the savepoint.
      if (!this.#db.inTransaction || this.#scopeOf(error) !== 'call') throw error
      this.#db.exec('rollback to one; release one')
      return failed(error)
    }
  }

  /** Runs a call in a transaction of its own. When the disk is full, a call that records outcomes releases the reserved space. */
  #runInOwnTransaction(call: Call): Outcome {
    if (this.#broken !== null) return { ok: false, error: this.#broken }
    const refusal = this.#refusal(call)
    if (refusal !== null) return failed(refusal)
    try {
      return this.#once(call)
    } catch (error) {
      if (this.#scopeOf(error) !== 'full') return failed(this.#broken ?? error)
      try {
        return this.#makeRoom(call) ? this.#once(call) : failed(error)
      } catch (second) {
        this.#scopeOf(second)
        return failed(this.#broken ?? second)
      }
    }
  }

  /** Error with which a call is refused, untried, because the disk is full; null when the call may be tried. */
  #refusal(call: Call): StoreUnavailable | null {
    const room = roomOf(call)
    if (room === 'needs' && this.#room.isReserveReleased)
      return new StoreUnavailable('the disk of the queue is full: new mail is refused until there is free space')
    if (room === 'lease' && !this.#room.fitsOutcomes())
      return new StoreUnavailable('the disk of the queue is full: deliveries wait until there is space to record their outcomes')
    return null
  }

  #once(call: Call): Outcome {
    return this.#transaction((): Outcome => ({ ok: true, value: this.#core.run(call) }))
  }

  /**
   * Frees space on a full disk: runs a checkpoint, releases the reserve, empties the trash, and restores the reserve if there is
   * room. Returns whether the call can be tried again; only a call that records outcomes may use the space of the reserve.
   */
  #makeRoom(call: Call): boolean {
    const room = roomOf(call)
    const isOutcome = room === 'reserve' || room === 'lease'
    const isMoved = this.#checkpoints.run()
    if (!isOutcome && this.#core.housekeeping.trashIsEmpty()) return isMoved
    this.#room.releaseReserve()
    this.#checkpoints.run()
    while (this.#transaction(() => this.#core.housekeeping.emptyTrash(Number.MAX_SAFE_INTEGER))) this.#checkpoints.run()
    this.#checkpoints.run()
    this.#room.restoreReserve(this.#checkpoints)
    return this.#refusal(call) === null && (isOutcome || !this.#room.isReserveReleased)
  }

  #transaction<T>(work: () => T): T {
    this.#begin.run()
    try {
      const result = work()
      this.#core.traffic.write()
      this.#core.usage.write()
      this.#core.events.write()
      this.#commit.run()
      this.#core.shares.committed()
      this.#core.usage.committed()
      return result
    } catch (error) {
      if (this.#db.inTransaction) this.#db.exec('rollback')
      this.#core.corrupt.takeQuarantined()
      this.#core.shares.rolledBack()
      this.#core.traffic.rewind(0)
      this.#core.usage.rolledBack()
      this.#core.events.rolledBack()
      throw error
    }
  }

  /**
   * Scope of an error: `call` for a bug or an invalid row, `full` when the disk is full, `store` when no call can be committed
   * now.
   */
  #scopeOf(error: unknown): 'call' | 'full' | 'store' {
    if (error instanceof StoreFailed) {
      this.#broken ??= error
      return 'store'
    }
    if (!(error instanceof Database.SqliteError)) return 'call'
    if (error.code === 'SQLITE_FULL') return 'full'
    if (error.code.startsWith('SQLITE_IOERR'))
      this.#broken ??= new StoreFailed(`I/O error in the queue file: ${error.message} (${error.code})`, { cause: error })
    return STORE_ERRORS.test(error.code) ? 'store' : 'call'
  }
}

const unavailable = (cause: InstanceType<typeof Database.SqliteError>): StoreUnavailable =>
  new StoreUnavailable(`the queue cannot be written: ${cause.message} (${cause.code})`, { cause })

const STORE_ERRORS = /^SQLITE_(IOERR|BUSY|LOCKED|READONLY|CANTOPEN|NOMEM|PROTOCOL|NOTADB|CORRUPT|FULL)/

/** Outcome of a failed call. An error of the store becomes StoreUnavailable; any other error is passed on unchanged. */
function failed(error: unknown): Outcome {
  if (error instanceof Database.SqliteError && STORE_ERRORS.test(error.code)) return { ok: false, error: unavailable(error) }
  if (error instanceof StoreUnavailable || error instanceof ContentUnreadable) return { ok: false, error }
  return { ok: false, error: error instanceof Error ? error : new Error(String(error)) }
}
