/**
 * Retries messages that were in delivery during two crashes, one at a time. The retries begin some time after the start, so that
 * other mail is delivered first. A third crash then identifies the message that causes it.
 */
import { SECOND, type Duration, type Timer } from '../../system/clock.ts'
import type { SchedulerLoop, SchedulerState } from './scheduler-state.ts'

type State = Pick<SchedulerState, 'store' | 'clock' | 'storeHealth' | 'arriving' | 'tasks'>

/** Wait after the start, during which other mail is delivered. */
const WAIT: Duration = 5 * SECOND

export class PoisonRetry {
  readonly #state: State
  readonly #scheduler: Pick<SchedulerLoop, 'dispatchAlone'>
  #timer: Timer | null = null
  #running = false
  #stopped = false

  constructor(state: State, scheduler: Pick<SchedulerLoop, 'dispatchAlone'>) {
    this.#state = state
    this.#scheduler = scheduler
  }

  /** Sets the time of the retries, also after shards were taken from another node. */
  start(): void {
    const { clock, tasks } = this.#state
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
    const { store, clock, storeHealth, arriving } = this.#state
    try {
      while (!this.#stopped) {
        const claim = store.claimSuspect(clock.now())
        const delivery = await arriving.claiming(
          claim.then((request) => (request === undefined ? null : { ended: this.#scheduler.dispatchAlone(request) })),
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
