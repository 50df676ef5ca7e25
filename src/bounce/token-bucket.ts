/**
 * Limits the rate at which notices are composed: a burst, then a number per second. Many undeliverable messages then do not delay
 * deliverable mail.
 */
import { SECOND, type Duration } from '../system/clock.ts'

export interface TokenBucketLimits {
  /** Number of tokens that may be taken at once. */
  readonly burst: number
  readonly perSecond: number
}

export class TokenBucket {
  readonly #limits: TokenBucketLimits
  #left: number
  #at: Duration = 0

  constructor(limits: TokenBucketLimits) {
    this.#limits = limits
    this.#left = limits.burst
  }

  /**
   * Takes one token at `now` on the monotonic clock. Returns 0 when a token was available, else the wait in ms for the next
   * token.
   */
  take(now: Duration): Duration {
    this.#left = Math.min(this.#limits.burst, this.#left + ((now - this.#at) * this.#limits.perSecond) / SECOND)
    this.#at = now
    if (this.#left < 1) return Math.ceil(((1 - this.#left) * SECOND) / this.#limits.perSecond)
    this.#left--
    return 0
  }
}
