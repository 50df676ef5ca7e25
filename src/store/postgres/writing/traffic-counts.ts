/**
 * Traffic that a transaction counts: recipients by what happened to them, per minute, and the counts of series. The transaction writes one row
 * per minute and one of series_delta before its commit, so that a batch of calls costs two statements.
 */
import type { OwnerId } from '../../../mail/message.ts'
import { HOUR, type QueueTime } from '../../../system/clock.ts'
import { deltaOf, type Happened } from '../../decisions/series-notes.ts'
import {
  minuteOf,
  NO_TRAFFIC,
  OLDER_MINUTES,
  TRAFFIC_HOURS,
  TRAFFIC_KINDS,
  TRAFFIC_MINUTES,
  type Traffic,
  type TrafficKind,
} from '../../counts/traffic.ts'
import { int8s } from '../session/arrays.ts'
import type { Statements } from '../session/database-connection.ts'

const COLUMNS = TRAFFIC_KINDS.join(', ')
const SUMS = TRAFFIC_KINDS.map((kind) => `coalesce(sum(${kind}), 0)::bigint as ${kind}`).join(', ')
const ADDED = TRAFFIC_KINDS.map((kind) => `${kind} = traffic.${kind} + excluded.${kind}`).join(', ')

export const addTraffic = `
  insert into traffic (node, part, at, ${COLUMNS})
  select $1, $2, new.* from unnest($3::bigint[], ${TRAFFIC_KINDS.map((_, n) => `$${n + 4}::bigint[]`).join(', ')}) as new
  on conflict (at, node, part) do update set ${ADDED}`
export const trafficTotal = `select ${SUMS} from traffic`
export const firstTraffic = 'select min(at) as first from traffic'
export const trafficSince = `
  select at, ${SUMS} from traffic where at >= $1 and at > ${OLDER_MINUTES} group by at order by at`

/** The earliest of the newest TRAFFIC_MINUTES rows by time. */
const KEPT = `(select min(at) from (
      select distinct at from traffic where at > ${OLDER_MINUTES} order by at desc limit ${TRAFFIC_MINUTES}) newest having count(*) = ${TRAFFIC_MINUTES})`
const folded = (time: string, rows: string): string => `
  with old as (delete from traffic where at > ${OLDER_MINUTES} and ${rows} returning *)
  insert into traffic (at, node, part, ${COLUMNS}) select ${time}, 0, 0, ${SUMS} from old group by 1
  on conflict (at, node, part) do update set ${ADDED}`

/** Adds up the minutes before the newest TRAFFIC_MINUTES by hour, and hours before TRAFFIC_HOURS in one row. */
export const foldTraffic: readonly string[] = [
  folded(`at / ${HOUR} * ${HOUR}`, `at < ${KEPT} and at % ${HOUR} > 0`),
  folded(String(OLDER_MINUTES), `at < ${KEPT} - ${TRAFFIC_HOURS}`),
]

/**
 * Number of batches after which a new row is begun. A row has a version per batch, which an old snapshot of another session keeps, and
 * each update reads all of them.
 */
const BATCHES_PER_PART = 500

interface CountingNode {
  readonly node: OwnerId
  /** Parameter `node_name`. */
  readonly name: string
  /** Number of the transaction. */
  readonly number: number
}

export class TrafficCounts {
  readonly #noted: Happened[] = []
  readonly #minutes = new Map<QueueTime, { -readonly [K in TrafficKind]: number }>()

  note(...happened: readonly Happened[]): void {
    for (const one of happened) {
      const { kind, at, recipients } = one
      if (recipients === 0) continue
      const minute = minuteOf(at)
      const counted = this.#minutes.get(minute) ?? { ...NO_TRAFFIC }
      counted[kind] += recipients
      this.#minutes.set(minute, counted)
      this.#noted.push(one)
    }
  }

  /** Writes the counts of a node. `batch` is the number of the transaction. */
  async write(statements: Statements, { node, name, number: batch }: CountingNode): Promise<void> {
    if (this.#noted.length === 0) return
    const minutes = [...this.#minutes.keys()]
    const counted = [...this.#minutes.values()]
    const columns = TRAFFIC_KINDS.map((kind) => int8s(counted.map((one: Traffic) => one[kind])))
    const series = deltaOf(this.#noted, name)
    await Promise.all([
      statements.query(addTraffic, [node, Math.floor(batch / BATCHES_PER_PART), int8s(minutes), ...columns]),
      series.length === 0 ? [] : statements.query('insert into series_delta (counts) values ($1)', [JSON.stringify(series)]),
    ])
  }
}
