/**
 * Verifies the indexes of the queue, at the start and once a day. Mail that an index has lost would wait until a restart or for ever;
 * the store finds it slice by slice, and repairs the queue.
 */
import type { RecipientId } from '../mail/message.ts'
import { DAY, sleep, type Clock, type Duration, type Timer } from '../system/clock.ts'
import { TaskSet } from '../system/task-set.ts'
import { StoreUnavailable, type QueueStore } from '../store/queue-store.ts'

/** Wait between two slices in ms. A million recipients take 20 minutes, and half a hundredth of a processor. */
const BETWEEN_SLICES: Duration = 250

export interface IndexCheckDeps {
  readonly clock: Clock
  readonly store: Pick<QueueStore, 'verify'>
}

export class IndexCheck {
  readonly #deps: IndexCheckDeps
  readonly #tasks = new TaskSet((error) => {
    throw error
  })
  #timer: Timer | null = null
  #stopped = false

  constructor(deps: IndexCheckDeps) {
    this.#deps = deps
    this.#begin()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#tasks.settled()
  }

  #begin(): void {
    this.#tasks.add(this.#run().finally(() => this.#runLater()))
  }

  #runLater(): void {
    if (!this.#stopped) this.#timer = this.#deps.clock.after(DAY, () => this.#begin())
  }

  async #run(): Promise<void> {
    const { clock, store } = this.#deps
    try {
      for (let after: RecipientId | null = 0; after !== null && !this.#stopped;) {
        after = await store.verify(after)
        await sleep(clock, BETWEEN_SLICES)
      }
    } catch (error) {
      // StoreHealth reports a store that cannot be used; the check runs again after a day.
      if (!(error instanceof StoreUnavailable)) throw error
    }
  }
}
