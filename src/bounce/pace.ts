/**
 * Bounds the rate at which notices are made: some at once, then so many a second, so that a storm of undeliverable
 * mail does not take the time of mail that can be delivered.
 */
import { SECOND, type Duration } from '../mail/clock.ts'

export interface PaceLimits {
  /** How many may follow each other without a pause. */
  readonly burst: number
  readonly perSecond: number
}

export class Pace {
  readonly #limits: PaceLimits
  #left: number
  #at: Duration = 0

  constructor(limits: PaceLimits) {
    this.#limits = limits
    this.#left = limits.burst
  }

  /** Takes a turn at a time of the stopwatch: 0 when it was free, else how long to wait before asking again. */
  take(now: Duration): Duration {
    this.#left = Math.min(this.#limits.burst, this.#left + ((now - this.#at) * this.#limits.perSecond) / SECOND)
    this.#at = now
    if (this.#left < 1) return Math.ceil(((1 - this.#left) * SECOND) / this.#limits.perSecond)
    this.#left--
    return 0
  }
}
