/**
 * Watches the lifetimes of mail that waits: one alarm at the earliest expiry, and what is over is claimed and handed on.
 */
import { SECOND, type Clock, type Instant, type Timer } from '../mail/clock.ts'
import type { DeliveryRequest } from './message.ts'
import type { StoreGuard } from './store-guard.ts'
import type { QueueStore } from './store.ts'

export interface ExpiryParts {
  readonly store: QueueStore
  readonly clock: Clock
  readonly guard: StoreGuard
  readonly track: (work: Promise<void>) => void
  /** The lifetime of this mail is over; it is leased. */
  readonly over: (requests: readonly DeliveryRequest[]) => Promise<void>
}

/** Recipients claimed at once. */
const CLAIM_LIMIT = 100

export class Expiry {
  readonly #parts: ExpiryParts
  #alarm: { readonly at: Instant; readonly timer: Timer } | null = null
  #running = false
  #stopped = false

  constructor(parts: ExpiryParts) {
    this.#parts = parts
  }

  stop(): void {
    this.#stopped = true
    this.#alarm?.timer.cancel()
  }

  /** Something that waits expires at `at`. */
  expect(at: Instant): void {
    if (this.#stopped || (this.#alarm !== null && this.#alarm.at <= at)) return
    this.#alarm?.timer.cancel()
    const timer = this.#parts.clock.alarm(at, () => {
      this.#alarm = null
      this.#parts.track(this.run())
    })
    this.#alarm = { at, timer }
  }

  /** Works off all that is over, and learns when to look again. */
  async run(): Promise<void> {
    if (this.#running) return
    this.#running = true
    const { store, clock, guard, over } = this.#parts
    try {
      while (!this.#stopped) {
        const requests = await store.claimExpired(clock.now(), CLAIM_LIMIT)
        if (requests.length === 0) break
        await over(requests)
      }
      const { expiresAt } = await store.nextDeadlines()
      if (expiresAt !== null) this.expect(expiresAt)
    } catch (error) {
      guard.failed(error)
      this.expect(clock.now() + SECOND)
    } finally {
      this.#running = false
    }
  }
}
