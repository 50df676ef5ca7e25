/**
 * Decides when a sync begins. On a fast disk, the thread of the store waits for its syncs: a commit for each costs less than the calls of
 * two threads. On a slow one, syncs overlap with the next commits, and with each other as far as the disk makes them at the same time.
 */
import type { Duration } from '../../../system/clock.ts'

/** Duration of a sync in ms from which on the thread does not wait for it. */
const SLOW: Duration = 1.5
/** Weight of the last sync in an estimate. */
const WEIGHT = 0.25
/** Factor by which overlapping syncs take longer than a single one, above which the disk makes them one after the other. */
const SERIAL = 1.5
/** Number of single syncs after which two are tried at the same time. */
const TRY_AFTER = 8

export class SyncPace {
  readonly #most: number
  /** Estimate of the duration of a sync, and of one beside which no other ran, in ms. */
  #duration: Duration = 0
  #single: Duration = 0
  /** Number of syncs that may run at once, and the number of single ones since it was 1. */
  #limit = 1
  #singles = 0
  #lastBegun: Duration = -Infinity

  /** `most` is the greatest number of syncs at once. */
  constructor(most: number) {
    this.#most = most
  }

  /** True when the thread waits for the next sync. */
  get waits(): boolean {
    return this.#duration < SLOW
  }

  /** Wait in ms until the next sync may begin at `now`, so that overlapping syncs begin evenly; null until one of those that run has ended. */
  waitFor(running: number, now: Duration): Duration | null {
    if (running >= this.#limit) return null
    return running === 0 ? 0 : Math.max(0, this.#lastBegun + this.#duration / this.#limit - now)
  }

  begun(now: Duration): void {
    this.#lastBegun = now
  }

  /** Learns from a sync, beside which `others` ran when it began. */
  ended(duration: Duration, others: number): void {
    this.#duration += WEIGHT * (duration - this.#duration)
    if (others > 0) {
      this.#limit = duration > SERIAL * this.#single ? Math.max(1, this.#limit - 1) : Math.min(this.#most, this.#limit + 1)
      return
    }
    this.#single = this.#single === 0 ? duration : this.#single + WEIGHT * (duration - this.#single)
    if (this.#limit > 1) return
    this.#singles++
    if (this.#singles < TRY_AFTER) return
    this.#singles = 0
    this.#limit = Math.min(2, this.#most)
  }
}
