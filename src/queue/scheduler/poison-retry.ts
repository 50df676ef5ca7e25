/**
 * Retries messages that were in delivery during two crashes, one at a time. The retries begin some time after the start, so that
 * other mail is delivered first. A third crash then identifies the message that causes it.
 */
import type { QueueStore } from '../../store/queue-store.ts'
import type { StoreHealth } from '../../store/store-health.ts'
import { SECOND, type Clock, type Duration, type Timer } from '../../system/clock.ts'
import type { TaskSet } from '../../system/task-set.ts'
import type { SchedulerPort } from './scheduler-port.ts'

export interface PoisonRetryDeps {
  readonly store: QueueStore
  readonly clock: Clock
  readonly storeHealth: StoreHealth
  readonly tasks: TaskSet
  readonly scheduler: Pick<SchedulerPort, 'claiming' | 'dispatchAlone'>
}

/** Wait after the start, during which other mail is delivered. */
const WAIT: Duration = 5 * SECOND

export class PoisonRetry {
  readonly #deps: PoisonRetryDeps
  #timer: Timer | null = null
  #running = false
  #stopped = false

  constructor(deps: PoisonRetryDeps) {
    this.#deps = deps
  }

  /** Sets the time of the retries, also after shards were taken from another node. */
  start(): void {
    const { clock, tasks } = this.#deps
    this.#timer?.cancel()
    this.#timer = clock.after(WAIT, () => tasks.add(this.run()))
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  /** Attempts all due recipients that were in delivery during two crashes, one at a time. */
  async run(): Promise<void> {
    if (this.#running) return
    this.#running = true
    const { store, clock, storeHealth, scheduler } = this.#deps
    try {
      while (!this.#stopped) {
        const claim = store.claimSuspect(clock.now())
        const delivery = await scheduler.claiming(
          claim.then((request) => (request === undefined ? null : { ended: scheduler.dispatchAlone(request) })),
        )
        if (delivery === null) return
        await delivery.ended
      }
    } catch (error) {
      // The next safety scan repeats the run.
      storeHealth.failed(error)
    } finally {
      this.#running = false
    }
  }
}
