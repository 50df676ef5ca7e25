/** Limits wrong tokens and login codes of an IP address: FAILURES within PERIOD. */
import { MINUTE, SECOND, type Duration, type Timers } from '../system/clock.ts'

const FAILURES = 10
const PERIOD: Duration = MINUTE
/** Maximum number of remembered addresses. Beyond it, the one whose failure is oldest is forgotten. */
const MOST_ADDRESSES = 10_000

export class FailureLimit {
  readonly #clock: Pick<Timers, 'monotonic'>
  /** Times of the last failures by address, in the order of the last failure. */
  readonly #failures = new Map<string, readonly Duration[]>()

  constructor(clock: Pick<Timers, 'monotonic'>) {
    this.#clock = clock
  }

  /** Seconds until an address may try again, rounded up; 0 when it may try now. */
  wait(address: string): number {
    const recent = this.#recent(address)
    const oldest = recent.at(-FAILURES)
    return oldest === undefined ? 0 : Math.ceil((oldest + PERIOD - this.#clock.monotonic()) / SECOND)
  }

  failed(address: string): void {
    const recent = [...this.#recent(address), this.#clock.monotonic()].slice(-FAILURES)
    this.#failures.delete(address)
    this.#failures.set(address, recent)
    const [first] = this.#failures.keys()
    if (this.#failures.size > MOST_ADDRESSES && first !== undefined) this.#failures.delete(first)
  }

  #recent(address: string): readonly Duration[] {
    const since = this.#clock.monotonic() - PERIOD
    return (this.#failures.get(address) ?? []).filter((at) => at > since)
  }
}
