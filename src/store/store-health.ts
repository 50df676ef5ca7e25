/**
 * Tracks whether the store can commit. A call that fails with StoreUnavailable marks the store unavailable. The store is then
 * pinged every 250 ms until a ping succeeds. A call that records an outcome is repeated until it is committed, however long that
 * takes, because mail whose outcome is lost is delivered again. A store that does not answer at all is seen by its sides.
 */
import { SECOND, sleep, type Clock, type Duration } from '../system/clock.ts'
import { every, type PeriodicTask } from '../system/periodic-task.ts'
import { rethrowUnlessUnavailable } from './queue-store.ts'
import type { StoreUpkeep } from './store-upkeep.ts'

/** Pause between two tries of a call. */
const PAUSE: Duration = SECOND
/** Pause between two pings: new mail is refused until one succeeds. */
const PING_PAUSE: Duration = 250

/**
 * A side of a store, reader or writer, which answer calls apart from each other: threads for a queue in a folder, sessions of PostgreSQL. A
 * daemon watches whether they answer.
 */
export interface StoreSide {
  /** Number of answers so far. */
  readonly answered: number
  /** True while a call waits for its answer, and while the side ends. */
  readonly isWaiting: boolean
  /**
   * Ends the side without the answers that it owes: its calls reject with StoreUnavailable. What it has committed stays committed.
   * Resolves with false when a thread cannot be ended, because a system call of it does not return.
   */
  abandon(): Promise<boolean>
}

export interface StoreSides {
  readonly reader: StoreSide
  readonly writer: StoreSide
}

export type SideName = keyof StoreSides

/** A side in the thread of its caller, which answers in the same turn of the event loop. */
export const ANSWERS_AT_ONCE: StoreSide = { answered: 0, isWaiting: false, abandon: async () => true }

interface StoreHealthDeps {
  readonly store: Pick<StoreUpkeep, 'ping'>
  readonly clock: Clock
  /** True while the node may use its leases; see Membership.holds. Always true when absent. */
  readonly holds?: (() => boolean) | undefined
  /** Called when the store has become unavailable. */
  readonly failed: (why: string) => void
}

export class StoreHealth {
  readonly #store: StoreHealthDeps['store']
  readonly #clock: Clock
  readonly #holds: () => boolean
  readonly #failed: (why: string) => void
  readonly #abandon = new AbortController()
  readonly #recovered: (() => void)[] = []
  #unavailable = false
  #pings: PeriodicTask | null = null

  constructor({ store, clock, holds = () => true, failed }: StoreHealthDeps) {
    this.#store = store
    this.#clock = clock
    this.#holds = holds
    this.#failed = failed
  }

  /** While true, no mail is accepted and no delivery starts. */
  get unavailable(): boolean {
    return this.#unavailable || !this.#holds()
  }

  /** Aborted by `abandon`, after which calls are no longer repeated. */
  get abandoned(): AbortSignal {
    return this.#abandon.signal
  }

  /** Calls `action` each time the unavailable store has become available again. */
  onRecovery(action: () => void): void {
    this.#recovered.push(action)
  }

  /** Stops the repetition of calls. Each pending call rejects with the StoreUnavailable of its last try. */
  abandon(): void {
    this.#abandon.abort()
    void this.#pings?.stop()
  }

  /** Repeats a call once a second until it is committed. Rejects with StoreUnavailable only after `abandon`. */
  async retryUntilCommitted<T>(call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        this.failed(error)
        if (this.#abandon.signal.aborted) throw error
        await sleep(this.#clock, PAUSE, this.#abandon.signal)
      }
    }
  }

  /** Marks the store unavailable. Rethrows any error except StoreUnavailable, because another error is a bug. */
  failed(error: unknown): void {
    rethrowUnlessUnavailable(error)
    if (this.#unavailable) return
    this.#unavailable = true
    this.#failed(error.message)
    if (!this.#abandon.signal.aborted)
      this.#pings = every(this.#clock, PING_PAUSE, () => this.#ping(), { failed: rethrowUnlessUnavailable })
  }

  async #ping(): Promise<void> {
    await this.#store.ping()
    void this.#pings?.stop()
    this.#unavailable = false
    for (const action of this.#recovered) action()
  }
}
