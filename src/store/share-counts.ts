/**
 * Counts of the live mail of each share (Message.share): what is queued or on hold, not what is corrupt or in the trash. They are kept while a
 * limit of the queue needs them, in the transactions that add and remove mail, so that their sums are exact after any crash.
 */
import { nothing, type MethodRows } from './method-traits.ts'
import type { Placement } from '../mail/message.ts'

/** The share of mail that no share counts, such as mail from before a limit was set. */
export const NO_SHARE = ''

/** Mail of one share. */
export interface ShareCount {
  readonly share: string
  readonly messages: number
  /** Size of whole messages. */
  readonly bytes: number
}

/** Counts after a commit. */
export interface ShareChanges {
  /** True when shares that are not in the list have no mail. */
  readonly all: boolean
  readonly counts: readonly ShareCount[]
}

export const countsAs = (placement: Placement): boolean => placement === 'queued' || placement === 'hold'

/** The counts of one owner of the queue. */
export interface ShareCounting {
  /**
   * Begins the counts, and counts a slice of the mail that was queued before; with false, ends and deletes them. Resolves with true when
   * all mail is counted. A repetition has no effect then.
   */
  countShares(counts: boolean): Promise<boolean>
  /** Counts that other owners of the queue keep. The sums of both are those of the queue. */
  sharesElsewhere(): Promise<readonly ShareCount[]>
  /**
   * Calls `listener` with the counts of this owner that a transaction has changed, before the calls of the transaction are answered. There is one
   * listener.
   */
  onShares(listener: (changes: ShareChanges) => void): void
}

/** The counts of an owner, as they are passed to its listener, which may come later. */
export class ShareFeed {
  readonly #counts = new Map<string, ShareCount>()
  #listener: ((changes: ShareChanges) => void) | null = null

  get counts(): readonly ShareCount[] {
    return [...this.#counts.values()]
  }

  /** Begins with all counts. */
  listen(listener: (changes: ShareChanges) => void): void {
    this.#listener = listener
    listener({ all: true, counts: this.counts })
  }

  changed(changes: ShareChanges): void {
    if (changes.all) this.#counts.clear()
    for (const one of changes.counts) {
      if (one.messages === 0 && one.bytes === 0) this.#counts.delete(one.share)
      else this.#counts.set(one.share, one)
    }
    this.#listener?.(changes)
  }
}

/** Adds up counts by share. */
export function sumsOf(counts: Iterable<ShareCount>): ReadonlyMap<string, ShareCount> {
  const sums = new Map<string, ShareCount>()
  for (const { share, messages, bytes } of counts) {
    const sum = sums.get(share)
    sums.set(share, { share, messages: messages + (sum?.messages ?? 0), bytes: bytes + (sum?.bytes ?? 0) })
  }
  return sums
}

/** The counts that a node of a shared queue keeps. They begin anew with each beginning of the counts of the queue. */
export class OwnShares {
  readonly #counts = new Map<string, ShareCount>()
  readonly feed = new ShareFeed()
  #since: number | null = null

  /** Number of the change since which the queue counts shares; null while it does not. */
  get since(): number | null {
    return this.#since
  }

  begin(since: number | null): void {
    if (since === this.#since) return
    this.#since = since
    this.#counts.clear()
    this.feed.changed({ all: true, counts: [] })
  }

  /** Adds committed counts, unless the queue has begun to count anew since. */
  add(since: number, added: Iterable<ShareCount>): void {
    if (since !== this.#since) return
    const counts = [...added].map(({ share, messages, bytes }) => {
      const before = this.#counts.get(share)
      return { share, messages: messages + (before?.messages ?? 0), bytes: bytes + (before?.bytes ?? 0) }
    })
    for (const one of counts) this.#counts.set(one.share, one)
    this.feed.changed({ all: false, counts })
  }
}

export const SHARE_METHODS = {
  // The counts of a full queue let its mail be refused in time.
  countShares: { room: 'reserve', sending: 'direct', changes: nothing },
  sharesElsewhere: { room: 'neither', sending: 'direct', changes: nothing },
} as const satisfies MethodRows<Omit<ShareCounting, 'onShares'>>
