/**
 * Time limit of one command or one message content (smtpd_timeout). Each received byte extends the limit by 1 /
 * smtpd_min_data_rate seconds. A client that sends single bytes therefore cannot hold a connection for long.
 */
import { SECOND, type Clock, type Duration, type Timer } from '../system/clock.ts'

export class Deadline {
  readonly #clock: Clock
  readonly #timeout: Duration
  /** Milliseconds by which a byte extends the limit. */
  readonly #perByte: number
  readonly #expired: () => void
  #at: Duration
  #timer: Timer
  #paused = false
  /** Start of the current command or content, on the monotonic clock. */
  since: Duration

  constructor(facts: { readonly clock: Clock; readonly timeout: Duration; readonly bytesPerSecond: number; readonly expired: () => void }) {
    this.#clock = facts.clock
    this.#timeout = facts.timeout
    this.#perByte = SECOND / facts.bytesPerSecond
    this.#expired = facts.expired
    this.since = this.#clock.monotonic()
    this.#at = this.since + facts.timeout
    this.#timer = this.#set(facts.timeout)
  }

  /** Starts the full time limit for the next command or content. */
  restart(): void {
    this.#paused = false
    this.since = this.#clock.monotonic()
    this.#at = this.since + this.#timeout
  }

  /** Suspends the limit while the server works, until `restart`. */
  pause(): void {
    this.#paused = true
  }

  /** Extends the limit for received bytes, to at most smtpd_timeout from now. */
  extend(bytes: number): void {
    this.#at = Math.min(this.#at + bytes * this.#perByte, this.#clock.monotonic() + this.#timeout)
  }

  /** Replaces the limit by a shorter one than smtpd_timeout, counted from now. */
  shorten(timeout: Duration): void {
    this.#at = this.#clock.monotonic() + timeout
    this.#timer.cancel()
    this.#timer = this.#set(timeout)
  }

  cancel(): void {
    this.#timer.cancel()
  }

  /** One timer serves all limits. A timer that expires before the current limit is set again. */
  #set(delay: Duration): Timer {
    return this.#clock.after(Math.ceil(delay), () => {
      const left = this.#paused ? this.#timeout : this.#at - this.#clock.monotonic()
      if (left <= 0) this.#expired()
      else this.#timer = this.#set(left)
    })
  }
}
