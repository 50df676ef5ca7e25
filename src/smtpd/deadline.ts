/**
 * How long a client may take for one command or one content: a time that starts anew with each, and that only bytes at
 * a decent rate extend, so that dripping them one by one does not help (postfix smtpd_timeout, smtpd_min_data_rate).
 */
import { SECOND, type Clock, type Duration, type Timer } from '../mail/clock.ts'

export class Deadline {
  readonly #clock: Clock
  readonly #timeout: Duration
  /** Milliseconds that a byte is worth. */
  readonly #perByte: number
  readonly #expired: () => void
  #at: Duration
  #timer: Timer
  #paused = false
  /** When the time began, on the stopwatch. */
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

  /** A new command or content may begin: the full time from now. */
  restart(): void {
    this.#paused = false
    this.since = this.#clock.monotonic()
    this.#at = this.since + this.#timeout
  }

  /** It is our turn; the client cannot be late. */
  pause(): void {
    this.#paused = true
  }

  /** Bytes came. */
  extend(bytes: number): void {
    this.#at = Math.min(this.#at + bytes * this.#perByte, this.#clock.monotonic() + this.#timeout)
  }

  /** Something that must be done much sooner. */
  shorten(timeout: Duration): void {
    this.#at = this.#clock.monotonic() + timeout
    this.#timer.cancel()
    this.#timer = this.#set(timeout)
  }

  cancel(): void {
    this.#timer.cancel()
  }

  /** One timer serves all: when it runs early, it is set again. */
  #set(delay: Duration): Timer {
    return this.#clock.after(Math.ceil(delay), () => {
      const left = this.#paused ? this.#timeout : this.#at - this.#clock.monotonic()
      if (left <= 0) this.#expired()
      else this.#timer = this.#set(left)
    })
  }
}
