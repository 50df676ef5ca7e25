/**
 * The due mail of one band at one destination of which more waits in the store than memory has room for, in the order of its shares (fair_share).
 * The store is read in the order of due times, a slice at a time, and mail that becomes due later is read after it; 16 to 30 bytes a recipient
 * are kept. After a restart the order is made anew from the store. Passive.
 */
import type { FairShares } from '../../../config/values/mail-classes.ts'
import type { RecipientId } from '../../../mail/message.ts'
import type { WaitingPlace, WaitingRecipient } from '../../../store/queue-store.ts'
import type { QueueTime } from '../../../system/clock.ts'
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
  readonly #tags = new ShareTags()
  readonly #order = new TagHeap()
  /** Recipients in the order. */
  readonly #known = new NumberTable({ hasValues: false })
  /** The last recipient that was read. */
  #after: WaitingPlace = { dueAt: 0, id: 0 }
  /** Earliest due time of recipients that may have come before `#after` since they were read. */
  #behind: QueueTime = Infinity
  /** Time from which recipients are due that were not read. */
  #unreadFrom: QueueTime = 0
  #isReading = false

  /** Number of recipients in the order. */
  get size(): number {
    return this.#known.size
  }

  get isReading(): boolean {
    return this.#isReading
  }

  /** Time from which recipients are due that are not in the order; Infinity for none. */
  get unreadFrom(): QueueTime {
    return this.#unreadFrom
  }

  /** Notes that recipients are due at a time which may not be in the order. */
  expect(dueAt: QueueTime): void {
    this.#behind = Math.min(this.#behind, dueAt)
    this.#unreadFrom = Math.min(this.#unreadFrom, dueAt)
  }

  /** Begins to read, after the place that is returned. */
  beginReading(): WaitingPlace {
    if (this.#behind <= this.#after.dueAt) this.#after = { dueAt: this.#behind, id: 0 }
    this.#behind = Infinity
    this.#isReading = true
    return this.#after
  }

  /** Charges the recipients that are due to their shares. Mail that is not due yet is not part of the order. */
  read({ rows, size, now }: Slice, shares: FairShares): void {
    this.#isReading = false
    const due = rows.filter(({ dueAt }) => dueAt <= now)
    for (const { id, share } of due) {
      if (this.#known.has(id)) continue
      const tag = this.#tags.charge(share ?? NO_SHARE, 1, shares.weightOf(share ?? NO_SHARE))
      this.#push(tag, id)
    }
    this.#after = due.at(-1) ?? this.#after
    const next = rows[due.length]?.dueAt ?? (rows.length < size ? Infinity : 0)
    this.#unreadFrom = Math.min(next, this.#behind)
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
