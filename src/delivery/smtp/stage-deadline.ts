/** Time limit of the awaited reply. One timer serves all commands: a timer that expires before the current deadline is set again. */
import type { Clock, Duration, Timer } from '../../system/clock.ts'

export class Deadline {
  readonly #clock: Clock
  readonly #expired: () => void
  /** Current deadline on the monotonic clock; Infinity for none. */
  #at = Infinity
  /** Upper limit of all deadlines: the end of the whole attempt. */
  #limit = Infinity
  #timer: Timer | undefined
  #timerAt = Infinity

  constructor(clock: Clock, expired: () => void) {
    this.#clock = clock
    this.#expired = expired
  }

  /** Limits all later deadlines to this time on the monotonic clock. */
  limit(at: Duration): void {
    this.#limit = at
  }

  /** Sets the deadline to `wait` from now. */
  set(wait: Duration): void {
    const now = this.#clock.monotonic()
    this.#at = Math.max(now, Math.min(now + wait, this.#limit))
    if (this.#at < this.#timerAt) this.#arm(now)
  }

  /** Removes the deadline. */
  clear(): void {
    this.#at = Infinity
  }

  /** Removes the deadline and the timer permanently. */
  close(): void {
    this.clear()
    this.#timer?.cancel()
    this.#timer = undefined
    this.#timerAt = Infinity
  }

  #arm(now: Duration): void {
    this.#timer?.cancel()
    this.#timerAt = this.#at
    this.#timer = this.#clock.after(this.#at - now, () => this.#check())
  }

  #check(): void {
    this.#timer = undefined
    this.#timerAt = Infinity
    const now = this.#clock.monotonic()
    if (now >= this.#at) {
      this.clear()
      this.#expired()
    } else if (this.#at !== Infinity) this.#arm(now)
  }
}
