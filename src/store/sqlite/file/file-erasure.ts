/**
 * Removes former values of rows from the files of a queue, after an erasure: SQLite leaves copies of rows in pages when it moves them
 * (rebuildPage of btree.c; secure_delete does not reach them), and the write-ahead log has earlier versions of pages. Carried out between
 * transactions.
 */
import Database from 'better-sqlite3'
import type { Checkpoints } from './checkpoints.ts'
import { PAGE } from './room.ts'

/**
 * Maximum number of bytes of a queue file that is rewritten, which takes about half a second and as much memory. In a larger one, the copies stay
 * until their pages are used again.
 */
const REWRITTEN = 64 * 1024 * 1024

export class FileErasure {
  readonly #db: Database.Database
  readonly #pages
  #state: 'none' | 'requested' | 'prevented' | 'done' = 'none'
  #isRewritten = false

  constructor(db: Database.Database) {
    this.#db = db
    this.#pages = db.prepare<[], number>('pragma page_count').pluck()
  }

  get isRequested(): boolean {
    return this.#state === 'requested'
  }

  /** Whether the files were cleared since the last request. */
  get isDone(): boolean {
    return this.#state === 'done'
  }

  /** Requests one try. `isFirst` is false for a further one of the same erasure, after readers have prevented the former. */
  request(isFirst: boolean): void {
    this.#state = 'requested'
    if (isFirst) this.#isRewritten = false
  }

  /**
   * Rewrites the file unless it is large or the disk is full, and empties the log unless readers prevent it. Mail waits for these readers
   * (checkpoints.ts), so that only a request leads to the next try. Throws StoreFailed.
   */
  carryOut(checkpoints: Checkpoints): void {
    if (!this.#isRewritten && (this.#pages.get() ?? 0) * PAGE <= REWRITTEN) this.#rewrite()
    this.#isRewritten = true
    this.#state = checkpoints.truncate() ? 'done' : 'prevented'
  }

  #rewrite(): void {
    try {
      this.#db.exec('vacuum')
    } catch (error) {
      if (!(error instanceof Database.SqliteError) || error.code !== 'SQLITE_FULL') throw error
    }
  }
}
