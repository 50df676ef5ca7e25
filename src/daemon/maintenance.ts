/**
 * Chores that need no exact time, by node-cron in UTC: the safety scan, the maildrop and the pruning of history
 * and trash. Due times
 * never depend on these; each run computes from the store what there is to do.
 */
import { schedule, type ScheduledTask } from 'node-cron'
import type { Config } from '../config/options.ts'
import type { Clock, Instant } from '../mail/clock.ts'
import type { Maildrop } from '../queue/maildrop.ts'
import type { Scheduler } from '../queue/scheduler.ts'
import { StoreUnavailable, type QueueStore } from '../queue/store.ts'
import type { Events } from '../telemetry/events.ts'

export interface MaintenanceParts {
  readonly config: () => Config
  readonly clock: Clock
  readonly store: QueueStore
  readonly scheduler: Scheduler
  readonly maildrop: Maildrop
  readonly events: Events
}

export class Maintenance {
  readonly #parts: MaintenanceParts
  readonly #task: ScheduledTask
  #lastScan: Instant

  constructor(parts: MaintenanceParts) {
    this.#parts = parts
    this.#lastScan = parts.clock.now()
    this.#task = schedule('* * * * *', () => this.#run(), { timezone: 'UTC', noOverlap: true })
  }

  async stop(): Promise<void> {
    await this.#task.destroy()
  }

  async #run(): Promise<void> {
    try {
      await this.#parts.maildrop.takeIn()
      await this.#scan()
      await this.#prune()
    } catch (error) {
      // The scheduler sees to a store that cannot commit; the chores come again in a minute.
      if (!(error instanceof StoreUnavailable)) throw error
      this.#parts.events.emit({ kind: 'note', level: 'warning', text: `chores put off: ${error.message}` })
    }
  }

  async #scan(): Promise<void> {
    const { clock, config, scheduler } = this.#parts
    if (clock.now() - this.#lastScan < config().queue_run_delay) return
    this.#lastScan = clock.now()
    await scheduler.scan()
  }

  /** A slice at a time, so that mail never waits for it. */
  async #prune(): Promise<void> {
    const { clock, store } = this.#parts
    const { history_retention, history_limit, trash_lifetime } = this.#parts.config()
    const limits = {
      historyBefore: clock.now() - history_retention,
      historyCount: history_limit,
      trashBefore: clock.now() - trash_lifetime,
    }
    for (let { more } = await store.prune(limits); more;) ({ more } = await store.prune(limits))
  }
}
