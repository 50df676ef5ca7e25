/**
 * Mail that was in flight at two crashes: one of it may be what kills the daemon. It is tried one by one, when all other
 * mail has had its turn, so that a third crash convicts the right message.
 */
import { SECOND, type Clock, type Duration, type Timer } from '../mail/clock.ts'
import type { DeliveryRequest } from './message.ts'
import type { StoreGuard } from './store-guard.ts'
import type { QueueStore } from './store.ts'

export interface SuspectsParts {
  readonly store: QueueStore
  readonly clock: Clock
  readonly guard: StoreGuard
  readonly track: (work: Promise<void>) => void
  /** Tries this mail alone; it is leased. */
  readonly tryAlone: (request: DeliveryRequest) => Promise<void>
}

/** How long all other mail goes first after a start. */
const WAIT: Duration = 5 * SECOND

export class Suspects {
  readonly #parts: SuspectsParts
  #alarm: Timer | null = null
  #stopped = false

  constructor(parts: SuspectsParts) {
    this.#parts = parts
  }

  start(): void {
    const { clock, track } = this.#parts
    this.#alarm = clock.after(WAIT, () => track(this.run()))
  }

  stop(): void {
    this.#stopped = true
    this.#alarm?.cancel()
  }

  /** Tries what is due of it. */
  async run(): Promise<void> {
    const { store, clock, guard, tryAlone } = this.#parts
    try {
      while (!this.#stopped) {
        const suspect = await store.claimSuspect(clock.now())
        if (suspect === undefined) return
        await tryAlone(suspect)
      }
    } catch (error) {
      // The next safety scan finds them again.
      guard.failed(error)
    }
  }
}
