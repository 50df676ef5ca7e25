/** Periodic tasks on the monotonic clock. The interval begins at the end of a run: no two runs overlap, and a missed run is skipped. */
import { withTimeout, type Duration, type Timer, type Timers } from './clock.ts'

export interface PeriodicTask {
  /** Runs at once; during a run, once more after its end, however often it is called. Has no effect after `stop`. */
  wake(): void
  /** Resolves when the last run that has begun has ended. Rejects with an error that `failed` has thrown. */
  settled(): Promise<void>
  /** Begins no run any more. Resolves as `settled` does, or after `stopLimit`. */
  stop(): Promise<void>
}

export interface PeriodicTaskOptions {
  /** True for a first run at the start instead of after an interval. */
  readonly immediate?: boolean
  /** Handles an error of a run, after which the task goes on. By default it throws the error, which ends the process like any bug. */
  readonly failed?: (error: unknown) => void
  /** Maximum time for which `stop` waits; unlimited by default. */
  readonly stopLimit?: Duration
}

type Interval = Duration | ((took: Duration) => Duration)
type Run = (stopping: AbortSignal) => Promise<void> | void
type Terms = PeriodicTaskOptions & { readonly interval: Interval; readonly run: Run }

/**
 * Starts a periodic task. `interval` is the time between runs, or computes it from the time that the last run took (0 for the first). The
 * signal of `run` aborts at `stop`.
 */
export const every = (clock: Timers, interval: Interval, run: Run, options: PeriodicTaskOptions = {}): PeriodicTask =>
  new RepeatedRun(clock, { interval, run, ...options })

class RepeatedRun implements PeriodicTask {
  readonly #clock: Timers
  readonly #terms: Terms
  readonly #stopping = new AbortController()
  #timer: Timer | null = null
  #last: Promise<void> = Promise.resolve()
  #isRunning = false
  /** True when `wake` was called during the run. */
  #isWanted = false

  constructor(clock: Timers, terms: Terms) {
    this.#clock = clock
    this.#terms = terms
    if (terms.immediate === true) this.#begin()
    else this.#later(0)
  }

  wake(): void {
    this.#isWanted = true
    if (this.#isRunning || this.#stopping.signal.aborted) return
    this.#timer?.cancel()
    this.#begin()
  }

  settled(): Promise<void> {
    return this.#last
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#timer?.cancel()
    const { stopLimit } = this.#terms
    await (stopLimit === undefined ? this.#last : withTimeout(this.#last, this.#clock, stopLimit))
  }

  #begin(): void {
    const begunAt = this.#clock.monotonic()
    this.#isRunning = true
    this.#isWanted = false
    this.#last = this.#run().finally(() => this.#later(this.#clock.monotonic() - begunAt))
  }

  #later(took: Duration): void {
    this.#isRunning = false
    if (this.#stopping.signal.aborted) return
    const { interval } = this.#terms
    const wait = typeof interval === 'number' ? interval : interval(took)
    this.#timer = this.#clock.after(this.#isWanted ? 0 : wait, () => this.#begin())
  }

  async #run(): Promise<void> {
    const { run, failed } = this.#terms
    try {
      await run(this.#stopping.signal)
    } catch (error) {
      if (failed === undefined) throw error
      failed(error)
    }
  }
}
