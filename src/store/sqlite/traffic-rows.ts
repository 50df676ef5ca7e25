/**
 * Rows of traffic. Calls only note what they count; the transaction writes one row per minute before its commit, so that a batch
 * of calls costs one statement.
 */
import type { Database } from 'better-sqlite3'
import type { QueueTime } from '../../system/clock.ts'
import { addTraffic, minuteOf, NO_TRAFFIC, TRAFFIC_MINUTES, type Traffic, type TrafficKind } from '../traffic.ts'
import * as sql from './queries.ts'

interface Noted {
  readonly kind: TrafficKind
  readonly minute: QueueTime
  readonly recipients: number
}

export class TrafficRows {
  /** Counts of the running transaction that are not written yet. */
  readonly #noted: Noted[] = []
  readonly #add
  readonly #total
  readonly #oldestKept
  readonly #fold
  readonly #forget

  constructor(db: Database) {
    this.#add = db.prepare<[QueueTime, number, number, number, number, number, number]>(sql.addTraffic)
    this.#total = db.prepare<[], Traffic>(sql.trafficTotal)
    this.#oldestKept = db.prepare<{ kept: number }, QueueTime>(sql.oldestKeptMinute).pluck()
    this.#fold = db.prepare<{ before: QueueTime }>(sql.foldMinutes)
    this.#forget = db.prepare<{ before: QueueTime }>(sql.deleteMinutes)
  }

  /** `recipients` is negative for mail that leaves the queue without an outcome, as in a move. */
  note(kind: TrafficKind, at: QueueTime, recipients: number): void {
    if (recipients !== 0) this.#noted.push({ kind, minute: minuteOf(at), recipients })
  }

  /** Position to which `rewind` returns when a call fails. */
  get mark(): number {
    return this.#noted.length
  }

  /** Drops what was noted after a mark. */
  rewind(mark: number): void {
    this.#noted.length = mark
  }

  /** Writes the noted counts. Runs in the transaction of the calls. */
  write(): void {
    if (this.#noted.length === 0) return
    const minutes = new Map<QueueTime, { -readonly [K in TrafficKind]: number }>()
    for (const { kind, minute, recipients } of this.#noted) {
      let counted = minutes.get(minute)
      if (counted === undefined) minutes.set(minute, (counted = { ...NO_TRAFFIC }))
      counted[kind] += recipients
    }
    for (const [minute, counted] of minutes) {
      const { accepted, delivered, deferred, bounced, expired, deleted } = counted
      this.#add.run(minute, accepted, delivered, deferred, bounced, expired, deleted)
    }
    this.#noted.length = 0
  }

  /** Sum of all minutes, including counts that are not written yet. */
  total(): Traffic {
    const unwritten = this.#noted.reduce((sum, { kind, recipients }) => ({ ...sum, [kind]: sum[kind] + recipients }), NO_TRAFFIC)
    return addTraffic(this.#total.get() ?? NO_TRAFFIC, unwritten)
  }

  /** Keeps the rows of the newest TRAFFIC_MINUTES minutes. Adds all older rows to one row and deletes them. */
  prune(): void {
    const before = this.#oldestKept.get({ kept: TRAFFIC_MINUTES })
    if (before === undefined) return
    this.#fold.run({ before })
    this.#forget.run({ before })
  }
}
