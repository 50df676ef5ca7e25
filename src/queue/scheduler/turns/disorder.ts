/** How far the order of a backlog is from that which the store would give now, and when the order is worth making anew. Passive. */
import type { RecipientId } from '../../../mail/message.ts'
import type { WaitingPlace } from '../../../store/queue-store.ts'
import type { QueueTime } from '../../../system/clock.ts'

/** Part of the recipients in an order that may be out of their places. To mend less would read the whole order for mail that comes a little late. */
const MOST_WRONG = 0.01
/** Time between two orders for each of the recipients, in ms: ten times what it takes to read one. */
const REST = 0.1

/** True for a place behind another in the order of due times. */
export const isAfter = (one: WaitingPlace, other: WaitingPlace): boolean =>
  one.dueAt > other.dueAt || (one.dueAt === other.dueAt && one.id > other.id)

/** The place before all others. */
export const BEGIN: WaitingPlace = { dueAt: 0, id: 0 }

/** An order as it is now: its numbers of recipients and of shares that have had recipients in it. */
interface Order {
  readonly recipients: number
  readonly shares: number
}

/**
 * Counts the recipients of an order that are out of their places: those that come before earlier ones of their share, which were read later, and
 * the turns that shares have lost with recipients that could not be claimed.
 */
export class Disorder {
  readonly #madeAt: QueueTime
  /** Number of recipients that were taken. */
  #taken = 0
  /** The place up to which the store was read before. */
  #end = BEGIN
  /** Shares with recipients before `#end` that were charged after later ones, since the reading began. */
  readonly #late = new Set<string>()
  /** Number of recipients of those shares that were met behind them. */
  #passing = 0
  #lost = 0

  /** Begins with an order that was made at a time: -Infinity for the first. */
  constructor(madeAt: QueueTime) {
    this.#madeAt = madeAt
  }

  /** Notes that the store was read up to a place. What is charged before it from now on is late. */
  readTo(place: WaitingPlace): void {
    if (isAfter(place, this.#end)) this.#end = place
  }

  /** Notes that a recipient of a share was charged. */
  charged(place: WaitingPlace, share: string): void {
    if (!isAfter(place, this.#end)) this.#late.add(share)
  }

  /** Notes that a reading has met a recipient of a share that is in the order. */
  met(share: string): void {
    if (this.#late.has(share)) this.#passing++
  }

  /** Notes that recipients were taken, in their turns. */
  took(recipients: readonly RecipientId[]): void {
    this.#taken += recipients.length
  }

  /** Notes that recipients that were taken could not be claimed: their shares have lost these turns. */
  lost(recipients: number): void {
    this.#lost += recipients
  }

  /** True when recipients that were taken could not be claimed. */
  get hasLost(): boolean {
    return this.#lost > 0
  }

  /** Ends a reading of all that is due. True when too many recipients are out of their places, and the order is to be made anew. */
  readAll({ recipients, shares }: Order, now: QueueTime): boolean {
    this.#late.clear()
    const isSlight = this.#passing + this.#lost <= MOST_WRONG * recipients
    if (isSlight) this.#passing = 0
    // A new order does not know which shares have had their turns: the others would wait once more.
    const haveHadTurns = this.#taken === 0 || this.#taken >= shares
    return !isSlight && haveHadTurns && now - this.#madeAt >= REST * recipients
  }
}
