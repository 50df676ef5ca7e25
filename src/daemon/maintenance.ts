/**
 * Periodic maintenance, every minute on the monotonic clock: the safety scan, and pruning of history and trash. Due times do
 * not depend on it. A run begins a minute after the end of the one before: none overlaps, and a missed one is not made up for.
 */
import type { Config } from '../config/options.ts'
import { HOUR, MINUTE, type Clock, type Duration, type Timer } from '../system/clock.ts'
import { TaskSet } from '../system/task-set.ts'
import type { Scheduler } from '../queue/scheduler/scheduler.ts'
import { StoreUnavailable, type QueueStore } from '../store/queue-store.ts'
import type { Events } from '../telemetry/events.ts'

export interface MaintenanceDeps {
  readonly config: () => Config
  readonly clock: Clock
  readonly store: Pick<QueueStore, 'prune'>
  readonly scheduler: Pick<Scheduler, 'scan'>
  readonly events: Events
}

const INTERVAL: Duration = MINUTE
/** Time for which a request with a key is kept. */
const REQUESTS_KEPT: Duration = 24 * HOUR

export class Maintenance {
  readonly #deps: MaintenanceDeps
  readonly #tasks = new TaskSet((error) => {
    throw error
  })
  #timer: Timer | null = null
  #stopped = false
  /** Time of the last safety scan, on the monotonic clock. */
  #lastScan: Duration

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps
    this.#lastScan = deps.clock.monotonic()
    this.#runLater()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#tasks.settled()
  }

  #runLater(): void {
    if (this.#stopped) return
    this.#timer = this.#deps.clock.after(INTERVAL, () => this.#tasks.add(this.#run().finally(() => this.#runLater())))
  }

  async #run(): Promise<void> {
    try {
      await this.#scan()
      await this.#prune()
    } catch (error) {
      // StoreHealth waits for the store to recover, and maintenance runs again after a minute.
      if (!(error instanceof StoreUnavailable)) throw error
      this.#deps.events.emit({ kind: 'note', level: 'warning', text: `maintenance postponed by a minute: ${error.message}` })
    }
  }

  async #scan(): Promise<void> {
    const { clock, config, scheduler } = this.#deps
    if (clock.monotonic() - this.#lastScan < config().queue_run_delay) return
    this.#lastScan = clock.monotonic()
    await scheduler.scan()
  }

  /** Prunes in slices, one transaction each, so that mail does not wait. */
  async #prune(): Promise<void> {
    const { clock, store } = this.#deps
    const { history_retention, history_limit, trash_lifetime } = this.#deps.config()
    const limits = {
      historyBefore: clock.now() - history_retention,
      historyCount: history_limit,
      trashBefore: clock.now() - trash_lifetime,
      requestsBefore: clock.now() - REQUESTS_KEPT,
    }
    for (let { more } = await store.prune(limits); more && !this.#stopped;) ({ more } = await store.prune(limits))
  }
}
