/**
 * What the queue remembers besides mail, and the tidying up: destinations out of the ordinary, deadlines, history and
 * trash past keeping, free pages given back to the disk.
 */
import type { Database } from 'better-sqlite3'
import type { Instant } from '../../mail/clock.ts'
import type { DestinationName } from '../message.ts'
import type { DestinationDue, DestinationRecord, QueueStore } from '../store.ts'
import type { Operating } from './operating.ts'
import * as sql from './queries.ts'
import { fromStatus, toDestination, type DestinationRow, type MessageRow } from './rows.ts'

type Limits = Parameters<QueueStore['prune']>[0]

/** Rows of history and of trash per slice: a few milliseconds. */
const HISTORY_SLICE = 250
const TRASH_SLICE = 25
/** Pages given back per slice, once at least so many are free that it is worth the writing. */
const VACUUM_SLICE = 500
const VACUUM_FROM = 4_000

export class Housekeeping {
  readonly #db: Database
  readonly #destinationsDue
  readonly #nextExpiry
  readonly #nextWarning
  readonly #destinations
  readonly #save
  readonly #forget
  readonly #oldest
  readonly #newest
  readonly #deleteThrough
  readonly #trash
  readonly #beat
  readonly #operating: Operating

  constructor(db: Database, operating: Operating) {
    this.#db = db
    this.#operating = operating
    this.#destinationsDue = db.prepare<[], DestinationDue>(sql.destinationsDue)
    this.#nextExpiry = db.prepare<[], Instant | null>(sql.nextExpiry).pluck()
    this.#nextWarning = db.prepare<[], Instant | null>(sql.nextWarning).pluck()
    this.#destinations = db.prepare<[], DestinationRow>(sql.destinations)
    this.#save = db.prepare(sql.saveDestination)
    this.#forget = db.prepare<[DestinationName]>(sql.forgetDestination)
    this.#oldest = db.prepare<{ limit: number }, { seq: number; left_at: Instant }>(sql.oldestDeparted)
    this.#newest = db.prepare<[], number | null>(sql.newestDeparted).pluck()
    this.#deleteThrough = db.prepare<[number]>(sql.deleteDepartedThrough)
    this.#trash = db.prepare<{ before: Instant; limit: number }, MessageRow>(sql.oldestTrash)
    this.#beat = db.prepare(sql.beatHeart)
  }

  destinationsDue(): DestinationDue[] {
    return this.#destinationsDue.all()
  }

  nextDeadlines(): { readonly expiresAt: Instant | null; readonly warnAt: Instant | null } {
    return { expiresAt: this.#nextExpiry.get() ?? null, warnAt: this.#nextWarning.get() ?? null }
  }

  destinations(): DestinationRecord[] {
    return this.#destinations.all().map(toDestination)
  }

  saveDestination({ name, deadUntil, probeInterval, suspendedBy, reason }: DestinationRecord): void {
    const ordinary = deadUntil === null && probeInterval === null && suspendedBy === null
    if (ordinary) this.#forget.run(name)
    else this.#save.run(name, deadUntil, probeInterval, suspendedBy, fromStatus(reason))
  }

  ping(): void {
    this.#beat.run()
  }

  prune({ historyBefore, historyCount, trashBefore }: Limits): { readonly more: boolean } {
    const trash = this.emptyTrash(trashBefore)
    const history = this.#pruneHistory(historyBefore, historyCount)
    return { more: trash || history || this.#giveBackPages() }
  }

  /** Removes a slice of the deleted mail for good, oldest first; says whether it was a whole slice. */
  emptyTrash(before: Instant): boolean {
    const rows = this.#trash.all({ before, limit: TRASH_SLICE })
    for (const row of rows) this.#operating.purge(row, row.deleted_at ?? before)
    return rows.length === TRASH_SLICE
  }

  trashIsEmpty(): boolean {
    return this.#trash.get({ before: Number.MAX_SAFE_INTEGER, limit: 1 }) === undefined
  }

  #pruneHistory(before: Instant, count: number): boolean {
    // Rows go from the old end only, so numbers have no gaps and the count is a subtraction.
    const surplus = (this.#newest.get() ?? 0) - count
    const rows = this.#oldest.all({ limit: HISTORY_SLICE })
    const keptFrom = rows.findIndex(({ seq, left_at }) => left_at >= before && seq > surplus)
    const last = rows[keptFrom < 0 ? rows.length - 1 : keptFrom - 1]
    if (last !== undefined) this.#deleteThrough.run(last.seq)
    return keptFrom < 0 && rows.length === HISTORY_SLICE
  }

  #giveBackPages(): boolean {
    const free = Number(this.#db.pragma('freelist_count', { simple: true }))
    const all = Number(this.#db.pragma('page_count', { simple: true }))
    if (free < VACUUM_FROM || free < all / 4) return false
    this.#db.pragma(`incremental_vacuum(${VACUUM_SLICE})`)
    return true
  }
}
