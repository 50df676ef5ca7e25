/**
 * Mail that keys have charged to quotas, in memory. A key is read from the store when its mail comes, and on a queue of several nodes again when that was
 * a second ago. Charges that a read may not have seen are added to it.
 */
import type { QuotaCharge, QuotaUse } from '../../store/records/quota-count.ts'
import { SECOND, type Clock, type Duration, type QueueTime } from '../../system/clock.ts'
import { endOfUse, type Slices } from './quota-window.ts'

/** Age of counts that are read again, on a queue of several nodes. */
const OLD: Duration = SECOND
/** Keys in memory, above which the one that was used least recently is forgotten. */
const MOST_KEYS = 100_000

interface QuotaCountsDeps {
  readonly read: (use: QuotaUse, now: QueueTime) => Promise<readonly QuotaCharge[]>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  /** True for a queue of several nodes. */
  readonly isShared: boolean
}

/** Charges that the counts of the store may not have. */
class Addition {
  readonly charges: readonly QuotaCharge[]
  isStored = false

  constructor(charges: readonly QuotaCharge[]) {
    this.charges = charges
  }
}

/** Mail by span and begin of the slice. */
type Spans = Map<Duration, Map<QueueTime, { messages: number; recipients: number }>>

class KeyCounts {
  spans: Spans = new Map()
  readonly unread = new Set<Addition>()
  reading: Promise<KeyCounts> | null = null
  readAt: Duration = -Infinity

  apply(charges: readonly QuotaCharge[], sign: 1 | -1): void {
    for (const { span, begin, messages, recipients } of charges) {
      const slices = this.spans.get(span) ?? new Map<QueueTime, { messages: number; recipients: number }>()
      this.spans.set(span, slices)
      const sum = slices.get(begin) ?? { messages: 0, recipients: 0 }
      slices.set(begin, { messages: sum.messages + sign * messages, recipients: sum.recipients + sign * recipients })
    }
  }

  prune(now: QueueTime): void {
    for (const [span, slices] of this.spans) for (const begin of slices.keys()) if (endOfUse(begin, span) <= now) slices.delete(begin)
  }
}

const NOTHING: Slices = new Map()

const idOf = ({ quota, key }: QuotaUse): string => `${quota} ${key}`

export class QuotaCounts {
  readonly #deps: QuotaCountsDeps
  /** Ordered by the last use. */
  readonly #keys = new Map<string, KeyCounts>()

  constructor(deps: QuotaCountsDeps) {
    this.#deps = deps
  }

  /** Makes the counts of keys known. Returns undefined when they are. Rejects with StoreUnavailable. */
  load(uses: readonly QuotaUse[]): Promise<void> | undefined {
    const unknown = uses.filter((use) => !this.#isKnown(use))
    return unknown.length === 0 ? undefined : Promise.all(unknown.map((use) => this.#read(use))).then(() => undefined)
  }

  /** The slices of a key that were loaded. */
  of(use: QuotaUse, span: Duration): Slices {
    return this.#keys.get(idOf(use))?.spans.get(span) ?? NOTHING
  }

  /** The keys in memory. */
  get uses(): readonly QuotaUse[] {
    return Array.from(this.#keys.keys(), (id) => ({ quota: id.slice(0, id.indexOf(' ')), key: id.slice(id.indexOf(' ') + 1) }))
  }

  /** Adds charges before they are stored, and returns what ends them: with true when they may be stored, else false. */
  add(charges: readonly QuotaCharge[]): (mayBeStored: boolean) => void {
    const now = this.#deps.clock.now()
    const added = [...Map.groupBy(charges, idOf)].map(([id, those]) => {
      const counts = this.#touched(id)
      const addition = new Addition(those)
      counts.prune(now)
      counts.apply(those, 1)
      counts.unread.add(addition)
      return { counts, addition }
    })
    return (mayBeStored) => {
      for (const { counts, addition } of added) this.#end(counts, addition, mayBeStored)
    }
  }

  /** Has keys read again before their next use. */
  forget(uses: readonly QuotaUse[]): void {
    for (const use of uses) {
      const counts = this.#keys.get(idOf(use))
      if (counts !== undefined) counts.readAt = -Infinity
    }
  }

  clear(): void {
    this.#keys.clear()
  }

  #end(counts: KeyCounts, addition: Addition, mayBeStored: boolean): void {
    addition.isStored = mayBeStored
    if (!mayBeStored) counts.apply(addition.charges, -1)
    // The read that goes on may have begun before the commit.
    if (!mayBeStored || (!this.#deps.isShared && counts.reading === null)) counts.unread.delete(addition)
  }

  #isKnown(use: QuotaUse): boolean {
    const counts = this.#keys.get(idOf(use))
    if (counts === undefined) return false
    const age = this.#deps.clock.monotonic() - counts.readAt
    return this.#deps.isShared ? age < OLD : counts.readAt !== -Infinity
  }

  #touched(id: string): KeyCounts {
    const counts = this.#keys.get(id) ?? new KeyCounts()
    this.#keys.delete(id)
    this.#keys.set(id, counts)
    if (this.#keys.size > MOST_KEYS) this.#forgetOldest()
    return counts
  }

  #forgetOldest(): void {
    for (const [id, { unread, reading }] of this.#keys) {
      if (unread.size > 0 || reading !== null) continue
      this.#keys.delete(id)
      return
    }
  }

  #read(use: QuotaUse): Promise<KeyCounts> {
    const counts = this.#touched(idOf(use))
    counts.reading ??= this.#readInto(counts, use).finally(() => (counts.reading = null))
    return counts.reading
  }

  async #readInto(counts: KeyCounts, use: QuotaUse): Promise<KeyCounts> {
    const { clock, read } = this.#deps
    const at = clock.monotonic()
    const seen = [...counts.unread].filter(({ isStored }) => isStored)
    const rows = await read(use, clock.now())
    for (const addition of seen) counts.unread.delete(addition)
    counts.spans = new Map()
    counts.apply(rows, 1)
    for (const { charges } of counts.unread) counts.apply(charges, 1)
    counts.readAt = at
    return counts
  }
}
