/** Waits in real time for a condition on a world, which requests of other processes fulfil. */
import { sleep, type Duration, type Timers } from '../system/clock.ts'

/** Interval at which a condition is examined. */
const STEP: Duration = 5

/** Resolves with true when `holds` does, and with false after `limit`, or when `signal` aborts. */
export async function until(
  holds: () => boolean,
  clock: Timers,
  { limit, signal }: { readonly limit: Duration; readonly signal: AbortSignal },
): Promise<boolean> {
  const end = clock.monotonic() + limit
  while (!holds()) {
    if (signal.aborted || clock.monotonic() >= end) return false
    await sleep(clock, STEP, signal)
  }
  return true
}

/** Advances a world by `speed` times the real time that passes. */
export class RealTimeDrive {
  readonly #clock: Timers
  readonly #advance: (by: Duration) => Promise<void>
  readonly #stopping = new AbortController()
  #speed = 0
  #running: Promise<void> | null = null

  constructor(clock: Timers, advance: (by: Duration) => Promise<void>) {
    this.#clock = clock
    this.#advance = advance
  }

  get speed(): number {
    return this.#speed
  }

  set speed(speed: number) {
    this.#speed = speed
    if (speed > 0) this.#running ??= this.#run().finally(() => (this.#running = null))
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    let last = this.#clock.monotonic()
    while (this.#speed > 0 && !this.#stopping.signal.aborted) {
      await sleep(this.#clock, STEP, this.#stopping.signal)
      const now = this.#clock.monotonic()
      const by = (now - last) * this.#speed
      last = now
      if (!this.#stopping.signal.aborted) await this.#advance(by)
    }
  }
}
