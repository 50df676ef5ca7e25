/**
 * Queue state other than mail, and maintenance: saved destinations, deadlines, pruning of history and trash past their retention,
 * and incremental vacuum.
 */
import { SqliteError, type Database } from 'better-sqlite3'
import type { QueueTime } from '../../../system/clock.ts'
import type { ClockRecord } from '../../../system/queue-clock.ts'
import type { NewEvent } from '../../../events/kept-event.ts'
import type { DestinationName, MessageId, RecipientId } from '../../../mail/message.ts'
import type { DestinationRecord, ScheduledMail } from '../../queue-store.ts'
import type { DestinationDue } from '../../message-operation.ts'
import type { PruneLimits } from '../../store-upkeep.ts'
import { FORGET_OPERATED, FORGET_REQUESTS } from '../../records/operation-round.ts'
import type { RecordCalls } from '../records/record-calls.ts'
import type { Operating } from './operate.ts'
import type { EventRows } from '../outbox/event-rows.ts'
import * as sql from './queries.ts'
import { fromStatus } from '../../stored-values.ts'
import type { MessageRow } from './rows.ts'
import { destinations, toDestination, type DestinationRow } from '../../sql/stored-rows.ts'
import type { TrafficRows } from './traffic-rows.ts'

/** Maximum number of history rows per slice. A slice takes a few milliseconds. */
const HISTORY_SLICE = 250
/** Maximum number of messages in the trash per slice. A slice takes a few milliseconds. */
const TRASH_SLICE = 25
/** Number of recipients verified per slice. A slice takes about a millisecond. */
const VERIFIED_SLICE = 200
/** Maximum number of messages whose time has come per slice. A slice takes a few milliseconds. */
const SCHEDULES_SLICE = 500
/** Number of pages vacuumed per slice. */
const VACUUM_SLICE = 500
/** Number of free pages from which a vacuum is worth its writes. */
const VACUUM_FROM = 4_000

export class Housekeeping {
  readonly #db: Database
  readonly #endSchedules
  readonly #nextScheduled
  readonly #scheduledMail
  readonly #destinationsDue
  readonly #nextExpiry
  readonly #nextWarning
  readonly #destinations
  readonly #save
  readonly #forget
  readonly #oldest
  readonly #newest
  readonly #deleteThrough
  readonly #savePruned
  readonly #trash
  readonly #beat
  readonly #reserveIds
  readonly #unindexed
  readonly #saveClock
  readonly #forgetOrigins
  readonly #operating: Operating
  readonly #traffic: TrafficRows
  readonly #records: RecordCalls
  readonly #events: EventRows
  readonly #changed: (message: MessageId) => void

  constructor(
    db: Database,
    parts: {
      readonly operating: Operating
      readonly traffic: TrafficRows
      readonly records: RecordCalls
      readonly events: EventRows
      readonly changed: (message: MessageId) => void
    },
  ) {
    this.#records = parts.records
    this.#events = parts.events
    this.#db = db
    this.#operating = parts.operating
    this.#traffic = parts.traffic
    this.#changed = parts.changed
    this.#endSchedules = db.prepare<{ now: QueueTime; limit: number }, MessageId>(sql.endSchedules).pluck()
    this.#nextScheduled = db.prepare<[], QueueTime | null>(sql.nextScheduled).pluck()
    this.#scheduledMail = db.prepare<[QueueTime], ScheduledMail>(sql.scheduledMail)
    this.#destinationsDue = db.prepare<[], DestinationDue>(sql.destinationsDue)
    this.#nextExpiry = db.prepare<[], QueueTime | null>(sql.nextExpiry).pluck()
    this.#nextWarning = db.prepare<[], QueueTime | null>(sql.nextWarning).pluck()
    this.#destinations = db.prepare<[], DestinationRow>(destinations)
    this.#save = db.prepare(sql.saveDestination)
    this.#forget = db.prepare<[DestinationName]>(sql.forgetDestination)
    this.#oldest = db.prepare<{ limit: number }, { seq: number; left_at: QueueTime }>(sql.oldestHistory)
    this.#newest = db.prepare<[], number | null>(sql.newestHistory).pluck()
    this.#deleteThrough = db.prepare<[number]>(sql.deleteHistoryThrough)
    this.#savePruned = db.prepare<[number]>(sql.savePrunedHistory)
    this.#trash = db.prepare<{ before: QueueTime; limit: number }, MessageRow>(sql.oldestTrash)
    this.#beat = db.prepare(sql.beatHeart)
    this.#forgetOrigins = db.prepare<{ before: QueueTime; limit: number }>(sql.forgetOrigins)
    this.#saveClock = db.prepare<{ name: string; value: number }>(sql.saveClockPart)
    this.#unindexed = db.prepare<{ after: RecipientId; size: number }, { last: RecipientId | null; missing: number }>(
      sql.sliceWithoutEntries,
    )
    this.#reserveIds = db.prepare<{ count: number }, MessageId>(sql.reserveIds).pluck()
  }

  endSchedules(now: QueueTime): { readonly ended: readonly MessageId[]; readonly next: QueueTime | null } {
    return { ended: this.#endSchedules.all({ now, limit: SCHEDULES_SLICE }), next: this.#nextScheduled.get() ?? null }
  }

  scheduledMail(now: QueueTime): readonly ScheduledMail[] {
    return this.#scheduledMail.all(now)
  }

  destinationsDue(): DestinationDue[] {
    return this.#destinationsDue.all()
  }

  nextDeadlines(): { readonly expiresAt: QueueTime | null; readonly warnAt: QueueTime | null } {
    return { expiresAt: this.#nextExpiry.get() ?? null, warnAt: this.#nextWarning.get() ?? null }
  }

  destinations(): DestinationRecord[] {
    return this.#destinations.all().map(toDestination)
  }

  saveDestination({ name, deadUntil, probeInterval, suspension, siteStatus }: DestinationRecord, events?: readonly NewEvent[]): void {
    this.#events.keep(events)
    const ordinary = deadUntil === null && probeInterval === null && suspension === null
    if (ordinary) this.#forget.run(name)
    else {
      const { by = null, until = null, reason = null } = suspension ?? {}
      this.#save.run(name, deadUntil, probeInterval, by, until, reason, fromStatus(siteStatus))
    }
  }

  saveClock(record: ClockRecord): void {
    for (const [part, value] of Object.entries(record)) this.#saveClock.run({ name: `clock_${part}`, value })
  }

  nextIds(count: number): MessageId[] {
    const last = this.#reserveIds.get({ count }) ?? 0
    return Array.from({ length: count }, (_, n) => last - count + 1 + n)
  }

  /** Throws SqliteError with SQLITE_CORRUPT when an index lacks a recipient of the slice. */
  verify(after: RecipientId): RecipientId | null {
    const { last, missing } = this.#unindexed.get({ after, size: VERIFIED_SLICE }) ?? { last: null, missing: 0 }
    if (missing > 0) throw new SqliteError(`recipients without an entry in an index: ${missing}`, 'SQLITE_CORRUPT')
    return last
  }

  ping(): void {
    this.#beat.run()
  }

  prune({ historyBefore, historyCount, trashBefore, requestsBefore }: PruneLimits): { readonly more: boolean } {
    this.#traffic.prune()
    const trash = this.emptyTrash(trashBefore)
    const history = this.#pruneHistory(historyBefore, historyCount)
    const origins = this.#forgetOrigins.run({ before: historyBefore, limit: HISTORY_SLICE }).changes === HISTORY_SLICE
    const operated = this.#records.run(FORGET_OPERATED, historyBefore)
    const requests = this.#records.run(FORGET_REQUESTS, requestsBefore)
    return { more: trash || history || origins || operated || requests || this.#giveBackPages() }
  }

  /** Permanently deletes one slice of the trash, oldest messages first. Returns whether the slice was full. */
  emptyTrash(before: QueueTime): boolean {
    const rows = this.#trash.all({ before, limit: TRASH_SLICE })
    for (const row of rows) {
      this.#operating.purge(row, row.deleted_at ?? before)
      this.#changed(row.id)
    }
    return rows.length === TRASH_SLICE
  }

  trashIsEmpty(): boolean {
    return this.#trash.get({ before: Number.MAX_SAFE_INTEGER, limit: 1 }) === undefined
  }

  #pruneHistory(before: QueueTime, count: number): boolean {
    // Rows are deleted from the oldest on, so row numbers have no gaps and a subtraction gives the count.
    const surplus = (this.#newest.get() ?? 0) - count
    const rows = this.#oldest.all({ limit: HISTORY_SLICE })
    const keptFrom = rows.findIndex(({ seq, left_at }) => left_at >= before && seq > surplus)
    const last = rows[keptFrom < 0 ? rows.length - 1 : keptFrom - 1]
    if (last !== undefined) {
      this.#deleteThrough.run(last.seq)
      this.#savePruned.run(last.seq)
    }
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
