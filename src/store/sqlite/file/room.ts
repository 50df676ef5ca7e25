/**
 * Room for new mail and for outcomes on the disk of the queue: its free bytes, and the free pages of the queue file, which the
 * next transactions reuse. The reserve is a file that keeps disk space occupied, and that is cut short (released) when the disk is
 * full. While it is released, no new mail is stored, but deliveries continue as long as their outcomes can be recorded.
 */
import type { Database } from 'better-sqlite3'
import type { Reserve } from '../../folder/reserve.ts'
import type { Checkpoints } from './checkpoints.ts'

/** Bytes of a page of the queue file. */
export const PAGE = 8_192
/**
 * Free space, as a part of the size of the reserve, that the outcomes of running deliveries need before another delivery may start.
 */
const FOR_OUTCOMES = 1 / 4
/** Number of pages that are returned to the file system between two checkpoints: each may need a frame in the write-ahead log. */
const VACUUM_SLICE = 128
/** Maximum number of slices per call of `restoreReserve`. */
const VACUUM_SLICES = 8

export class Room {
  readonly #db: Database
  readonly #reserve: Reserve
  readonly #freePages

  constructor(db: Database, reserve: Reserve) {
    this.#db = db
    this.#reserve = reserve
    this.#freePages = db.prepare<[], number>('pragma freelist_count').pluck()
  }

  get isReserveReleased(): boolean {
    return this.#reserve.isReleased
  }

  /** Number of bytes in the reserve file. */
  get reserveSize(): number {
    return this.#reserve.size
  }

  /**
   * Bytes available for new mail: the free space less the size of the reserve, which stays free for the write-ahead log. 0 while
   * the reserve is released.
   */
  forMail(): number {
    return this.#reserve.isReleased ? 0 : Math.max(0, this.#free() - this.#reserve.size)
  }

  /** Whether there is space to record the outcomes of deliveries that have not started yet. */
  fitsOutcomes(): boolean {
    return !this.#reserve.isReleased || this.#free() >= this.#reserve.size * FOR_OUTCOMES
  }

  releaseReserve(): void {
    if (!this.#reserve.isReleased) this.#reserve.release()
  }

  /** Writes the reserve file again, in space that was freed on the disk or inside the queue file. */
  restoreReserve(checkpoints: Checkpoints): void {
    this.#reserve.restore()
    for (let slice = 0; slice < VACUUM_SLICES && this.#reserve.isReleased; slice++) {
      // Restoring needs space of twice the size of the reserve. Free pages of the size of the reserve stay for new mail.
      if ((this.#freePages.get() ?? 0) * PAGE < 3 * this.#reserve.size || !checkpoints.run()) return
      this.#db.pragma(`incremental_vacuum(${VACUUM_SLICE})`)
      checkpoints.run()
      this.#reserve.restore()
    }
  }

  #free(): number {
    return this.#reserve.freeBytes() + (this.#freePages.get() ?? 0) * PAGE
  }
}
