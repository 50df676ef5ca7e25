/**
 * Runs calls in batches, each batch one transaction with one sync. One bad row does not roll back its companions; a
 * disk that is full or ill is told apart from a bug; and after an I/O error nothing is written any more, because what
 * the disk then holds is known only after a restart.
 */
import Database from 'better-sqlite3'
import { ContentUnreadable } from '../queue-errors.ts'
import { StoreUnavailable } from '../store.ts'
import { MAY_USE_RESERVE, NEEDS_ROOM, unavailable, type Call, type Core, type Outcome } from './calls.ts'
import type { Reserve } from './reserve.ts'

/** The most calls in one transaction. */
export const BATCH = 128

export class Batches {
  readonly #db: Database.Database
  readonly #core: Core
  readonly #reserve: Reserve
  readonly #begin
  readonly #commit
  #broken: StoreUnavailable | null = null

  constructor(db: Database.Database, core: Core, reserve: Reserve) {
    this.#db = db
    this.#core = core
    this.#reserve = reserve
    this.#begin = db.prepare('begin immediate')
    this.#commit = db.prepare('commit')
  }

  /** One outcome per call, in their order; every one of them is on disk or has changed nothing. */
  run(calls: readonly Call[]): Outcome[] {
    if (this.#broken === null && this.#reserve.isReleased) this.#reserve.restore()
    const outcomes: Outcome[] = []
    for (let from = 0; from < calls.length; from += BATCH) outcomes.push(...this.#together(calls.slice(from, from + BATCH)))
    return outcomes
  }

  #together(calls: readonly Call[]): Outcome[] {
    if (this.#broken !== null || this.#reserve.isReleased) return calls.map((call) => this.#alone(call))
    try {
      return this.#transaction(() => calls.map((call) => ({ ok: true, value: this.#core.run(call) })))
    } catch (error) {
      return this.#apart(calls, error)
    }
  }

  /** The batch failed as a whole: who is to blame? */
  #apart(calls: readonly Call[], error: unknown): Outcome[] {
    const trouble = this.#troubleOf(error)
    if (trouble === 'store') return calls.map(() => failed(error))
    if (trouble === 'full' || calls.length === 1) return calls.map((call) => this.#alone(call))
    try {
      return this.#transaction(() => calls.map((call) => this.#guarded(call)))
    } catch (second) {
      return this.#troubleOf(second) === 'store' ? calls.map(() => failed(second)) : calls.map((call) => this.#alone(call))
    }
  }

  /** Inside a transaction, behind a savepoint: a failure undoes this call only. */
  #guarded(call: Call): Outcome {
    this.#db.exec('savepoint one')
    try {
      const value = this.#core.run(call)
      this.#db.exec('release one')
      return { ok: true, value }
    } catch (error) {
      // Some errors end the whole transaction at once; then there is nothing left to be guarded.
      if (!this.#db.inTransaction || this.#troubleOf(error) !== 'call') throw error
      this.#db.exec('rollback to one; release one')
      return failed(error)
    }
  }

  /** In a transaction of its own, with the reserve given up for outcomes when the disk is full. */
  #alone(call: Call): Outcome {
    if (this.#broken !== null) return { ok: false, error: this.#broken }
    if (this.#reserve.isReleased && NEEDS_ROOM.has(call.method))
      return failed(new StoreUnavailable('the disk is full: only outcomes are recorded'))
    try {
      return this.#once(call)
    } catch (error) {
      if (this.#troubleOf(error) !== 'full') return failed(error)
      try {
        return this.#makeRoom(call) ? this.#once(call) : failed(error)
      } catch (second) {
        this.#troubleOf(second)
        return failed(second)
      }
    }
  }

  #once(call: Call): Outcome {
    return this.#transaction((): Outcome => ({ ok: true, value: this.#core.run(call) }))
  }

  /** The trash goes first; the reserve is for outcomes. Says whether another try is worth it. */
  #makeRoom({ method }: Call): boolean {
    const isOutcome = MAY_USE_RESERVE.has(method)
    if (!isOutcome && this.#core.housekeeping.trashIsEmpty()) return false
    if (!this.#reserve.isReleased) this.#reserve.release()
    this.#checkpoint()
    while (this.#transaction(() => this.#core.housekeeping.emptyTrash(Number.MAX_SAFE_INTEGER))) this.#checkpoint()
    this.#checkpoint()
    this.#reserve.restore()
    return isOutcome || !this.#reserve.isReleased
  }

  /** Lets the write-ahead log be used from its beginning again. On a full disk it may fail, and that is no news. */
  #checkpoint(): void {
    try {
      this.#db.pragma('wal_checkpoint(passive)')
    } catch (error) {
      if (this.#troubleOf(error) !== 'full') throw error
    }
  }

  #transaction<T>(work: () => T): T {
    this.#begin.run()
    try {
      const result = work()
      this.#commit.run()
      return result
    } catch (error) {
      if (this.#db.inTransaction) this.#db.exec('rollback')
      this.#core.corrupt.takeNews()
      throw error
    }
  }

  /** `call`: a bug or a bad row; `full`: no room; `store`: nobody can be served now. */
  #troubleOf(error: unknown): 'call' | 'full' | 'store' {
    if (!(error instanceof Database.SqliteError)) return 'call'
    if (error.code === 'SQLITE_FULL') return 'full'
    if (error.code.startsWith('SQLITE_IOERR')) this.#broken ??= unavailable(error)
    return STORE_TROUBLE.test(error.code) ? 'store' : 'call'
  }
}

const STORE_TROUBLE = /^SQLITE_(IOERR|BUSY|LOCKED|READONLY|CANTOPEN|NOMEM|PROTOCOL|NOTADB|CORRUPT|FULL)/

/** Trouble of the store becomes StoreUnavailable; anything else is what it is. */
function failed(error: unknown): Outcome {
  if (error instanceof Database.SqliteError && STORE_TROUBLE.test(error.code)) return { ok: false, error: unavailable(error) }
  if (error instanceof StoreUnavailable || error instanceof ContentUnreadable) return { ok: false, error }
  return { ok: false, error: error instanceof Error ? error : new Error(String(error)) }
}
