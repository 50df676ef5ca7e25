/** One alarm of a clock (`Clock.alarm`), at the earliest requested instant. When it fires, and at `stop`, all requests are dropped. */
import type { Clock, QueueTime, Timer } from './clock.ts'

export class EarliestAlarm {
  readonly #clock: Clock
  readonly #ring: () => void
  #set: { readonly at: QueueTime; readonly timer: Timer } | null = null
  #stopped = false

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock
    this.#ring = ring
  }

  /** Requests an alarm at `at`. Has no effect when an earlier one is set. */
  expect(at: QueueTime): void {
    if (this.#set === null || at < this.#set.at) this.replace(at)
  }

  /** Replaces all requests by one at `at`; null for none. */
  replace(at: QueueTime | null): void {
    if (this.#stopped || at === (this.#set?.at ?? null)) return
    this.#set?.timer.cancel()
    this.#set = at === null ? null : { at, timer: this.#clock.alarm(at, () => this.#rung()) }
  }

  /** Cancels the alarm and ignores later requests. */
  stop(): void {
    this.replace(null)
    this.#stopped = true
  }

  #rung(): void {
    this.#set = null
    this.#ring()
  }
}
