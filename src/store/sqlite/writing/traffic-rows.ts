/**
 * Rows of traffic and of series_delta. Calls only note what they count; the transaction writes one row per minute and one of series before its
 * commit, so that a batch of calls costs two statements.
 */
import type { Database } from 'better-sqlite3'
import type { QueueTime } from '../../../system/clock.ts'
import { deltaOf, type Happened } from '../../decisions/series-notes.ts'
import { addTraffic, minuteOf, NO_TRAFFIC, TRAFFIC_HOURS, TRAFFIC_MINUTES, type Traffic, type TrafficKind } from '../../counts/traffic.ts'
import * as sql from './queries.ts'

export class TrafficRows {
  /** Counts of the running transaction that are not written yet. */
  readonly #noted: Happened[] = []
  readonly #addSeries
  readonly #add
  readonly #total
  readonly #oldestKept
  readonly #folds

  constructor(db: Database) {
    this.#add = db.prepare<[QueueTime, number, number, number, number, number, number]>(sql.addTraffic)
    this.#total = db.prepare<[], Traffic>(sql.trafficTotal)
    this.#oldestKept = db.prepare<{ kept: number }, QueueTime>(sql.oldestKeptMinute).pluck()
    this.#folds = sql.foldTraffic.map((text) => db.prepare<{ before: QueueTime; hours: QueueTime }>(text))
    this.#addSeries = db.prepare<[string]>('insert into series_delta (counts) values (?)')
  }

  note(...happened: readonly Happened[]): void {
    for (const one of happened) if (one.recipients !== 0) this.#noted.push(one)
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
    for (const { kind, at, recipients } of this.#noted) {
      const minute = minuteOf(at)
      let counted = minutes.get(minute)
      if (counted === undefined) minutes.set(minute, (counted = { ...NO_TRAFFIC }))
      counted[kind] += recipients
    }
    for (const [minute, counted] of minutes) {
      const { accepted, delivered, deferred, bounced, expired, deleted } = counted
      this.#add.run(minute, accepted, delivered, deferred, bounced, expired, deleted)
    }
    const series = deltaOf(this.#noted, null)
    if (series.length > 0) this.#addSeries.run(JSON.stringify(series))
    this.#noted.length = 0
  }

  /** Sum of all minutes, including counts that are not written yet. */
  total(): Traffic {
    const unwritten = this.#noted.reduce((sum, { kind, recipients }) => ({ ...sum, [kind]: sum[kind] + recipients }), NO_TRAFFIC)
    return addTraffic(this.#total.get() ?? NO_TRAFFIC, unwritten)
  }

  /** Keeps the newest TRAFFIC_MINUTES minutes and TRAFFIC_HOURS hours; adds up older minutes by hour, and older hours in one row. */
  prune(): void {
    const before = this.#oldestKept.get({ kept: TRAFFIC_MINUTES })
    if (before === undefined) return
    const hours = before - TRAFFIC_HOURS
    for (const statement of this.#folds) statement.run({ before, hours })
  }
}
