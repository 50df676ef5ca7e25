/**
 * Watches the queue's clock once a second on the monotonic clock. It logs steps of the wall clock, and saves the record from
 * which the next process continues the clock.
 */
import { MINUTE, SECOND, type Duration, type Timer } from '../system/clock.ts'
import { largestUnits } from '../system/duration.ts'
import type { QueueClock } from '../system/queue-clock.ts'
import { TaskSet } from '../system/task-set.ts'
import { StoreUnavailable, type QueueStore } from '../store/queue-store.ts'
import type { Events } from '../telemetry/events.ts'

export interface ClockWatchDeps {
  readonly clock: QueueClock
  readonly store: Pick<QueueStore, 'saveClock'>
  readonly events: Events
}

/** Maximum time between two records. A restart may be uncertain about this much time. */
const RECORD_INTERVAL: Duration = MINUTE

export class ClockWatch {
  readonly #deps: ClockWatchDeps
  readonly #tasks = new TaskSet((error) => this.#postpone(error))
  #timer: Timer | null = null
  #recordAt: Duration = 0

  constructor(deps: ClockWatchDeps) {
    this.#deps = deps
  }

  /** Starts the watch. `step` is the step of the wall clock since the last process. */
  start(step: Duration): void {
    this.#look(step)
  }

  async stop(): Promise<void> {
    this.#timer?.cancel()
    await this.#tasks.settled()
    this.#save()
    await this.#tasks.settled()
  }

  #look(step: Duration): void {
    const { clock, events } = this.#deps
    if (step !== 0) {
      const by = largestUnits(Math.abs(step)).map(({ figure, unit }) => `${figure} ${unit}${figure === 1 ? '' : 's'}`)
      const text = `the wall clock was set ${step > 0 ? 'forward' : 'back'} by ${by.join(' ')}; queued mail keeps its waits and lifetimes`
      events.emit({ kind: 'note', level: 'warning', text })
    }
    if (step !== 0 || clock.monotonic() >= this.#recordAt) {
      this.#recordAt = clock.monotonic() + RECORD_INTERVAL
      this.#save()
    }
    this.#timer = clock.after(SECOND, () => this.#look(clock.observe()))
  }

  #save(): void {
    const { clock, store } = this.#deps
    this.#tasks.add(store.saveClock(clock.record()))
  }

  /** Saves the record again after a second, because the store could not commit. */
  #postpone(error: unknown): void {
    if (!(error instanceof StoreUnavailable)) throw error
    this.#recordAt = 0
  }
}
