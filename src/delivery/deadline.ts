/**
 * The time limit of whatever a conversation waits for. It is moved with every command, so it keeps one timer and looks
 * again when that fires early, instead of setting one for each command.
 */
import type { Clock, Duration, Timer } from '../mail/clock.ts'

export class Deadline {
  readonly #clock: Clock
  readonly #expired: () => void
  /** On the stopwatch; Infinity while nothing is awaited. */
  #at = Infinity
  /** No deadline goes beyond this: the limit of the whole attempt. */
  #limit = Infinity
  #timer: Timer | undefined
  #timerAt = Infinity

  constructor(clock: Clock, expired: () => void) {
    this.#clock = clock
    this.#expired = expired
  }

  /** The stopwatch time that no deadline from now on goes beyond. */
  limit(at: Duration): void {
    this.#limit = at
  }

  /** Something is awaited for at most this long from now. */
  set(wait: Duration): void {
    const now = this.#clock.monotonic()
    this.#at = Math.max(now, Math.min(now + wait, this.#limit))
    if (this.#at < this.#timerAt) this.#arm(now)
  }

  /** Nothing is awaited. */
  clear(): void {
    this.#at = Infinity
  }

  /** Nothing will be awaited any more. */
  close(): void {
    this.clear()
    this.#timer?.cancel()
    this.#timer = undefined
    this.#timerAt = Infinity
  }

  #arm(now: Duration): void {
    this.#timer?.cancel()
    this.#timerAt = this.#at
    this.#timer = this.#clock.after(this.#at - now, () => this.#look())
  }

  #look(): void {
    this.#timer = undefined
    this.#timerAt = Infinity
    const now = this.#clock.monotonic()
    if (now >= this.#at) {
      this.clear()
      this.#expired()
    } else if (this.#at !== Infinity) this.#arm(now)
  }
}
