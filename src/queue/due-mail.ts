/**
 * The mail that waits in the store, seen by destination: when each next needs attention, one alarm for the earliest,
 * claims of what is due for which there is room, and the way back for what cannot be tried after all. A dead, suspended
 * or saturated destination is simply not in the heap, so its backlog costs nothing.
 */
import type { Clock, Instant } from '../mail/clock.ts'
import type { ActiveQueue } from './active-queue.ts'
import type { Destination } from './destination.ts'
import { DueHeap } from './due-heap.ts'
import { idsOf } from './lifecycle.ts'
import type { DeliveryRequest, DestinationName, Message } from './message.ts'
import type { StoreGuard } from './store-guard.ts'
import type { QueueStore } from './store.ts'

export interface DueMailParts {
  readonly store: QueueStore
  readonly clock: Clock
  readonly guard: StoreGuard
  readonly active: ActiveQueue
  /** Leased mail to be taken up; at the end of a claim, also of one that brought nothing. */
  readonly claimed: (destination: Destination, requests: readonly DeliveryRequest[]) => void
  /** The message is not in memory any more, or this part of it is not. */
  readonly returned: (message: Message) => void
  /** Mail that was in memory waits in the store again, and expires at `at`. */
  readonly expires: (at: Instant) => void
  /** The alarm rings, or mail has gone back. */
  readonly turn: () => void
  readonly track: (work: Promise<void>) => void
}

/** Recipients claimed at once for one destination. */
const CLAIM_LIMIT = 100

export class DueMail {
  readonly #parts: DueMailParts
  readonly #heap = new DueHeap()
  /** Destinations that found no room in the active queue: they ask again when a delivery ends. */
  readonly #crowdedOut = new Set<Destination>()
  #alarm: { readonly at: Instant; cancel(): void } | null = null

  constructor(parts: DueMailParts) {
    this.#parts = parts
  }

  /** Something waits at a destination from `dueAt` on. */
  expect(name: DestinationName, dueAt: Instant): void {
    const destination = this.#parts.active.destination(name)
    destination.expect(dueAt)
    this.schedule(destination)
  }

  /** Puts the destination where the time of its next attention has it. */
  schedule(destination: Destination): void {
    this.#heap.set(destination.name, destination.wakesAt)
  }

  scheduleAll(): void {
    for (const destination of this.#parts.active.destinations) this.schedule(destination)
  }

  /** A delivery has ended, so there may be room for a destination that found none. */
  letIn(): void {
    for (const crowded of this.#crowdedOut) {
      this.#crowdedOut.delete(crowded)
      this.schedule(crowded)
      return
    }
  }

  /** Asks the store for the work of every destination whose time has come and that has room. */
  claim(): void {
    const { clock, active, track } = this.#parts
    const now = clock.now()
    for (let first = this.#heap.first(); first !== undefined && first.at <= now; first = this.#heap.first()) {
      const destination = active.destination(first.name)
      const limit = this.#limit(destination)
      if (limit > 0) {
        destination.claiming = true
        active.promise(limit)
        track(this.#claim(destination, now, limit))
      } else if (destination.todo + destination.inFlight === 0) {
        this.#crowdedOut.add(destination)
      }
      // Without a claim it comes back when a delivery ends: its own, or any if it has none.
      this.#heap.set(first.name, null)
    }
  }

  /** How many recipients to claim; a probe is one. */
  #limit(destination: Destination): number {
    if (destination.standing.kind === 'dead') return destination.inFlight === 0 ? 1 : 0
    // A few windows' worth keeps the deliveries busy; more would only be leased for nothing.
    if (destination.todo >= 2 * destination.window) return 0
    const othersWait = this.#heap.size > 1
    const { active } = this.#parts
    return Math.min(CLAIM_LIMIT, Math.max(10, 4 * destination.window), active.room(destination, othersWait), active.roomForMessages())
  }

  async #claim(destination: Destination, now: Instant, limit: number): Promise<void> {
    const { store, guard, active, claimed } = this.#parts
    destination.probing(true)
    destination.nextDueAt = null // what is expected from here on is news to the store's answer
    let requests: readonly DeliveryRequest[] = []
    try {
      const recipientLimit = destination.settings.destination_recipient_limit
      const answer = await store.claimDue({ destination: destination.name, now, limit, recipientLimit })
      if (answer.nextDueAt !== null) destination.expect(answer.nextDueAt)
      requests = answer.requests
    } catch (error) {
      destination.expect(now)
      guard.failed(error)
    }
    destination.claiming = false
    active.redeem(limit)
    if (requests.length === 0) {
      destination.probing(false)
      // No delivery will come of it that would let the next one in.
      this.letIn()
    }
    claimed(destination, requests)
  }

  /** Jobs that arrived in memory after their destination had closed go back. */
  giveBackWhereClosed(destination: Destination): void {
    const { standing, todo } = destination
    if (standing.kind === 'open' || todo === 0) return
    if (standing.kind === 'dead' && standing.probing && todo === 1) return
    this.#parts.track(this.giveBackWaiting(destination))
  }

  /** All jobs that wait for a destination in memory go back. */
  async giveBackWaiting(destination: Destination): Promise<void> {
    const requests = this.#parts.active.withdraw(destination)
    if (requests.length === 0) return
    if (destination.inFlight === 0) destination.probing(false)
    await this.giveBack(destination, requests)
    // The watch over lifetimes did not see what was in memory.
    for (const { recipients } of requests) for (const { expiresAt } of recipients) this.#parts.expires(expiresAt)
  }

  /** Leased mail is not tried now: it waits in the store as it did before. */
  async giveBack(destination: Destination, requests: readonly DeliveryRequest[]): Promise<void> {
    const { store, guard, returned, turn } = this.#parts
    await guard.insist(() => store.giveBack(requests.flatMap(idsOf)))
    for (const { message, recipients } of requests) {
      for (const recipient of recipients) destination.expect(recipient.dueAt)
      returned(message)
    }
    this.schedule(destination)
    turn()
  }

  /** Sets the alarm for the earliest; `resting`: nothing may be claimed now. */
  arm(resting: boolean): void {
    const first = resting ? undefined : this.#heap.first()
    if (this.#alarm !== null && this.#alarm.at === first?.at) return
    this.#alarm?.cancel()
    this.#alarm = null
    if (first === undefined) return
    const timer = this.#parts.clock.alarm(first.at, () => {
      this.#alarm = null
      this.#parts.turn()
    })
    this.#alarm = { at: first.at, cancel: () => timer.cancel() }
  }
}
