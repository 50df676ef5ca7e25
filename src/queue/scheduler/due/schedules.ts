/**
 * Ends the state `scheduled` of messages when the time that their clients named has come, with one alarm for the earliest. Deliveries do not wait
 * for it: they begin by the due times.
 */
import { SECOND, type Clock, type QueueTime } from '../../../system/clock.ts'
import { EarliestAlarm } from '../../../system/earliest-alarm.ts'
import type { TaskSet } from '../../../system/task-set.ts'
import type { QueueStore } from '../../../store/queue-store.ts'
import type { StoreHealth } from '../../../store/store-health.ts'

interface State {
  readonly store: Pick<QueueStore, 'endSchedules'>
  readonly clock: Clock
  readonly storeHealth: Pick<StoreHealth, 'failed'>
  readonly tasks: TaskSet
}

export class Schedules {
  readonly #state: State
  readonly #alarm: EarliestAlarm
  #running = false

  constructor(state: State) {
    this.#state = state
    this.#alarm = new EarliestAlarm(state.clock, () => state.tasks.add(this.run()))
  }

  stop(): void {
    this.#alarm.stop()
  }

  /** Records that a message is scheduled for a time. */
  expect(at: QueueTime): void {
    this.#alarm.expect(at)
  }

  /** Ends the state of all messages whose time has come, then sets the alarm for the next one. A failed run is repeated by the safety scan. */
  async run(): Promise<void> {
    if (this.#running) return
    this.#running = true
    const { store, clock, storeHealth } = this.#state
    try {
      for (;;) {
        const now = clock.now()
        const { ended, next } = await store.endSchedules(now)
        if (next === null) return
        if (next > now || ended.length === 0) return this.expect(next > now ? next : now + SECOND)
      }
    } catch (error) {
      storeHealth.failed(error)
    } finally {
      this.#running = false
    }
  }
}
