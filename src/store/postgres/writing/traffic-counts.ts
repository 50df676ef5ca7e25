/**
 * Traffic that a transaction counts: recipients by what happened to them, per minute. The transaction writes one row per minute before
 * its commit, so that a batch of calls costs one statement.
 */
import type { OwnerId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { minuteOf, NO_TRAFFIC, OLDER_MINUTES, TRAFFIC_KINDS, TRAFFIC_MINUTES, type Traffic, type TrafficKind } from '../../traffic.ts'
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
export const trafficSince = `
  select at, ${SUMS} from traffic where at >= $1 and at > ${OLDER_MINUTES} group by at order by at`

/** Adds up the minutes before the newest TRAFFIC_MINUTES in one row. */
export const foldMinutes = `
  with kept as (select min(at) as at from (
      select distinct at from traffic where at > ${OLDER_MINUTES} order by at desc limit ${TRAFFIC_MINUTES}) newest having count(*) = ${TRAFFIC_MINUTES}),
    old as (delete from traffic where at > ${OLDER_MINUTES} and at < (select at from kept) returning *)
  insert into traffic (at, node, part, ${COLUMNS}) select ${OLDER_MINUTES}, 0, 0, ${SUMS} from old having count(*) > 0
  on conflict (at, node, part) do update set ${ADDED}`

/**
 * Number of batches after which a new row is begun. A row has a version per batch, which an old snapshot of another session keeps, and
 * each update reads all of them.
 */
const BATCHES_PER_PART = 500

export class TrafficCounts {
  readonly #minutes = new Map<QueueTime, { -readonly [K in TrafficKind]: number }>()

  note(kind: TrafficKind, at: QueueTime, recipients: number): void {
    if (recipients === 0) return
    const minute = minuteOf(at)
    const counted = this.#minutes.get(minute) ?? { ...NO_TRAFFIC }
    counted[kind] += recipients
    this.#minutes.set(minute, counted)
  }

  get isEmpty(): boolean {
    return this.#minutes.size === 0
  }

  /** Writes the counts. `batch` is the number of the transaction. */
  async write(statements: Statements, node: OwnerId, batch: number): Promise<void> {
    if (this.isEmpty) return
    const minutes = [...this.#minutes.keys()]
    const counted = [...this.#minutes.values()]
    const columns = TRAFFIC_KINDS.map((kind) => int8s(counted.map((one: Traffic) => one[kind])))
    await statements.query(addTraffic, [node, Math.floor(batch / BATCHES_PER_PART), int8s(minutes), ...columns])
  }
}
