/**
 * The due mail of one band at one destination of which more waits in the store than memory has room for, in the order of its shares (fair_share).
 * The store is read in the order of due times, a slice at a time, and mail that becomes due later is read after it; 16 to 30 bytes a recipient
 * are kept. After a restart the order is made anew from the store. Passive.
 */
import type { FairShares } from '../../../config/values/mail-classes.ts'
import type { RecipientId } from '../../../mail/message.ts'
import type { WaitingPlace, WaitingRecipient } from '../../../store/queue-store.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { BEGIN, Disorder } from './disorder.ts'
import { NO_SHARE } from './flow.ts'
import { NumberTable } from './number-table.ts'
import { ShareTags } from './share-tags.ts'
import { TagHeap } from './tag-heap.ts'

/** A slice of the store, which was asked for more than `size` recipients. */
interface Slice {
  readonly rows: readonly WaitingRecipient[]
  readonly size: number
  readonly now: QueueTime
}

export class Backlog {
  #tags = new ShareTags()
  #order = new TagHeap()
  /** Recipients in the order. */
  #known = new NumberTable({ hasValues: false })
  /** The last recipient that was read. */
  #after = BEGIN
  #disorder = new Disorder(-Infinity)
  /** Earliest due time of recipients that may have come before `#after` since they were read. */
  #behind: QueueTime = Infinity
  /** Time from which recipients are due that were not read. */
  #unreadFrom: QueueTime = 0
  #isReading = false

  /** Number of recipients in the order. */
  get size(): number {
    return this.#known.size
  }

  /** Size of the tables. */
  get bytes(): number {
    return this.#tags.bytes + this.#order.bytes + this.#known.bytes
  }

  get isReading(): boolean {
    return this.#isReading
  }

  /** Time from which recipients are due that are not in the order; Infinity for none. */
  get unreadFrom(): QueueTime {
    return this.#unreadFrom
  }

  /** True when recipients that were taken could not be claimed, since the order was made. */
  get hasMissed(): boolean {
    return this.#disorder.hasLost
  }

  /** Notes that recipients are due at a time which may not be in the order. */
  expect(dueAt: QueueTime): void {
    this.#behind = Math.min(this.#behind, dueAt)
    this.#unreadFrom = Math.min(this.#unreadFrom, dueAt)
  }

  /** Begins to read, after the place that is returned. */
  beginReading(): WaitingPlace {
    this.#disorder.readTo(this.#after)
    if (this.#behind <= this.#after.dueAt) this.#after = { dueAt: this.#behind, id: 0 }
    this.#behind = Infinity
    this.#isReading = true
    return this.#after
  }

  /** Charges the recipients that are due to their shares. Mail that is not due yet is not part of the order. */
  read({ rows, size, now }: Slice, shares: FairShares): void {
    this.#isReading = false
    const due = rows.filter(({ dueAt }) => dueAt <= now)
    for (const one of due) this.#add(one, shares)
    this.#after = due.at(-1) ?? this.#after
    const next = rows[due.length]?.dueAt ?? (rows.length < size ? Infinity : 0)
    this.#unreadFrom = Math.min(next, this.#behind)
    this.#mend(now)
  }

  #add(one: WaitingRecipient, shares: FairShares): void {
    const share = one.share ?? NO_SHARE
    if (this.#known.has(one.id)) return this.#disorder.met(share)
    this.#push(this.#tags.charge(share, 1, shares.weightOf(share)), one.id)
    this.#disorder.charged(one, share)
  }

  /** Notes the numbers of recipients that were taken: those that were claimed, and those that cannot be, whose shares have lost these turns. */
  claimed({ claimed, missed }: { readonly claimed: number; readonly missed: number }, now: QueueTime): void {
    this.#disorder.lost(missed)
    // An order of recipients none of which can be claimed would be made anew for ever.
    if (claimed > 0 && !this.#isReading) this.#mend(now)
  }

  /** Forgets the order when all is read and too many recipients are out of their places. It is made anew from the store. */
  #mend(now: QueueTime): void {
    if (this.#unreadFrom <= now) return
    if (!this.#disorder.readAll({ recipients: this.size, shares: this.#tags.size }, now)) return
    this.#tags = new ShareTags()
    this.#order = new TagHeap()
    this.#known = new NumberTable({ hasValues: false })
    this.#disorder = new Disorder(now)
    this.#after = BEGIN
    this.#unreadFrom = 0
  }

  /** Ends a reading that failed. */
  notRead(): void {
    this.#isReading = false
    this.#unreadFrom = 0
  }

  /** Removes the first recipients of the order, to be claimed. */
  take(limit: number): readonly RecipientId[] {
    const taken: RecipientId[] = []
    for (let id = this.#order.first; id !== undefined && taken.length < limit; id = this.#order.first) {
      this.#tags.started(this.#order.tag)
      this.#order.pop()
      this.#known.delete(id)
      taken.push(id)
    }
    this.#disorder.took(taken)
    return taken
  }

  /** Takes recipients back that were not attempted. Their shares were charged for them: they are first. */
  giveBack(recipients: readonly RecipientId[]): void {
    for (const id of recipients) if (!this.#known.has(id)) this.#push(this.#tags.time, id)
  }

  #push(tag: number, id: RecipientId): void {
    this.#known.set(id)
    this.#order.push(tag, id)
  }
}
