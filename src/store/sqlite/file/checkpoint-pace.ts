/**
 * Decides when a checkpoint is due. No call is answered during a checkpoint, which makes three syncs: on a disk whose syncs take 400 ms,
 * checkpoints at each 1,000 frames took a quarter of the time. After a slow one the log may grow further, as far as the disk has room.
 */
import type { Duration } from '../../../system/clock.ts'

/** Number of frames in the log from which a checkpoint is due. A frame is one page of 8 kB; the number is SQLite's default. */
export const DUE_FROM = 1_000
/** Number of frames in the log from which a checkpoint does not wait: 62 MB, below `journal_size_limit`. */
export const MOST_FRAMES = 7_500
/** Duration of a checkpoint in ms from which on the next one waits. */
const SLOW: Duration = 100
/** Factor: the next checkpoint waits for this many times the duration of a slow one. */
const REST = 20

export class CheckpointPace {
  readonly #dueFrom: number
  readonly #hasRoom: () => boolean
  #restsUntil: Duration = -Infinity

  /** `hasRoom` tells whether the disk has room for a log of MOST_FRAMES, and for its pages in the database file. */
  constructor(dueFrom: number, hasRoom: () => boolean) {
    this.#dueFrom = dueFrom
    this.#hasRoom = hasRoom
  }

  isDue(frames: number, now: Duration): boolean {
    if (frames < this.#dueFrom) return false
    return now >= this.#restsUntil || frames >= MOST_FRAMES || !this.#hasRoom()
  }

  /** Learns from a checkpoint that ended at `now`. */
  ended(duration: Duration, now: Duration): void {
    if (duration >= SLOW) this.#restsUntil = now + REST * duration
  }
}
