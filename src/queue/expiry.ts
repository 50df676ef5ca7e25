/**
 * Watches the lifetimes of mail that waits: one alarm at the earliest expiry. Mail whose lifetime is over expires at once
 * where nobody may be asked. Elsewhere it is due for its last attempt, which may have to wait for room or for the outcome
 * of a probe: it is left alone and looked at again every second, and is given up when that takes `minimal_backoff_time`.
 */
import { SECOND, type Clock, type Duration, type Instant, type Timer } from '../mail/clock.ts'
import type { ActiveQueue } from './active-queue.ts'
import type { Destination } from './destination.ts'
import type { DueMail } from './due-mail.ts'
import type { DeliveryRequest, DestinationName } from './message.ts'
import { NEVER_STARTED, type Settling } from './settling.ts'
import type { StoreGuard } from './store-guard.ts'
import type { QueueStore } from './store.ts'

export interface ExpiryParts {
  readonly store: QueueStore
  readonly clock: Clock
  readonly guard: StoreGuard
  readonly active: ActiveQueue
  readonly due: DueMail
  readonly settling: Settling
  readonly track: (work: Promise<void>) => void
}

/** Recipients claimed at once. */
const CLAIM_LIMIT = 100

export class Expiry {
  readonly #parts: ExpiryParts
  /** Since when mail that is over has been left alone at a destination, on the stopwatch. */
  #leftAlone: ReadonlyMap<DestinationName, Duration> = new Map()
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
    const { store, clock, guard } = this.#parts
    try {
      await this.#workOff()
      const { expiresAt } = await store.nextDeadlines()
      // Nothing that was left alone waits any more: who is left alone next waits anew.
      if (expiresAt === null || expiresAt > clock.now()) this.#leftAlone = new Map()
      const soon = this.#leftAlone.size > 0 ? clock.now() + SECOND : 0
      if (expiresAt !== null) this.expect(Math.max(expiresAt, soon))
    } catch (error) {
      guard.failed(error)
      this.expect(clock.now() + SECOND)
    } finally {
      this.#running = false
    }
  }

  async #workOff(): Promise<void> {
    const { store, clock } = this.#parts
    const before = this.#leftAlone
    const now = clock.monotonic()
    const waited = (name: DestinationName) => now - (before.get(name) ?? now)
    const leftAlone = new Map<DestinationName, Duration>()
    while (!this.#stopped) {
      const requests = await store.claimExpired(clock.now(), CLAIM_LIMIT, [...leftAlone.keys()])
      if (requests.length === 0) break
      for (const { name } of await this.#over(requests, waited)) leftAlone.set(name, before.get(name) ?? now)
    }
    this.#leftAlone = leftAlone
  }

  /**
   * The lifetime of this mail, which is leased, is over. `waited`: how long such mail has been left alone at a destination.
   * Returns where it is left alone, its leases given back.
   */
  async #over(requests: readonly DeliveryRequest[], waited: (name: DestinationName) => Duration): Promise<Iterable<Destination>> {
    const { active, due, settling, clock } = this.#parts
    const waiting = new Map<Destination, DeliveryRequest[]>()
    for (const request of requests) {
      const destination = active.destination(request.destination)
      const { standing, settings, name } = destination
      const now = clock.now()
      const patience = settings.minimal_backoff_time
      const late = waited(name) >= patience && request.recipients.every(({ expiresAt }) => now - expiresAt >= patience)
      if (late || !destination.maySoonBeAsked(now)) {
        await settling.expired(request, standing.kind === 'dead' ? standing.reason : NEVER_STARTED)
      } else waiting.set(destination, [...(waiting.get(destination) ?? []), request])
    }
    for (const [destination, kept] of waiting) await due.giveBack(destination, kept)
    return waiting.keys()
  }
}
