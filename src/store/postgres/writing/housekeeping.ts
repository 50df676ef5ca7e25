/** Queue state other than mail, and maintenance: ids, saved destinations, deadlines, the audit log, and pruning. */
import type { DestinationName, LeaseTerms, MessageId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import type { Shard } from '../../membership/shards.ts'
import type { DestinationRecord, ScheduledMail } from '../../queue-store.ts'
import type { DestinationDue } from '../../message-operation.ts'
import type { PruneLimits } from '../../store-upkeep.ts'
import { fromStatus } from '../../stored-values.ts'
import { FORGET_OPERATED, FORGET_REQUESTS } from '../../records/operation-round.ts'
import { runRecord } from '../session/record-calls.ts'
import { storableText } from '../session/arrays.ts'
import type { Statements } from '../session/database-connection.ts'
import type { Operating } from './operate.ts'
import * as sql from './operation-queries.ts'
import * as intake from './queries.ts'
import { toDestination, type DestinationRow } from '../../sql/stored-rows.ts'
import { foldTraffic } from './traffic-counts.ts'
import { sent, type Send, type Transaction } from './write-transaction.ts'

/** Maximum number of history rows per slice. A slice takes some milliseconds. */
const HISTORY_SLICE = 1_000
/** Maximum number of messages in the trash per slice. A slice takes some milliseconds. */
const TRASH_SLICE = 25

/** Maximum number of messages whose time has come per slice. A slice takes some milliseconds. */
const SCHEDULES_SLICE = 1_000

interface HousekeepingDeps {
  readonly terms: LeaseTerms
  readonly name: string
  readonly operating: Operating
  readonly reading: Statements
}

export class Housekeeping {
  readonly #deps: HousekeepingDeps

  constructor(deps: HousekeepingDeps) {
    this.#deps = deps
  }

  nextIds: Send<'nextIds'> = (tx, calls) => {
    const reserved = tx.query<{ id: MessageId }>(intake.reserveIds, [calls.reduce((sum, [count]) => sum + count, 0)])
    return sent(
      reserved.then((rows) => {
        let from = 0
        return calls.map(([count]) => rows.slice(from, (from += count)).map(({ id }) => id))
      }),
    )
  }

  saveDestination: Send<'saveDestination'> = (tx, calls) => {
    for (const [, events] of calls) tx.events.note(events)
    return sent(Promise.all(calls.map(([record]) => this.#save(tx, record))))
  }

  ping: Send<'ping'> = (tx, calls) => sent(tx.query(sql.ping).then(() => calls.map(() => undefined)))

  endSchedules: Send<'endSchedules'> = (tx, calls) => ({
    answers: Promise.all(calls.map(([now]) => endSchedules(tx, now))),
    isLast: false,
  })

  prune: Send<'prune'> = (tx, calls) => ({ answers: Promise.all(calls.map(([limits]) => this.#prune(tx, limits))), isLast: false })

  async destinationsDue(): Promise<readonly DestinationDue[]> {
    return this.#deps.reading.query<DestinationDue>(sql.destinationsDue, [this.#deps.terms.owner])
  }

  scheduledMail(now: QueueTime): Promise<readonly ScheduledMail[]> {
    return this.#deps.reading.query<ScheduledMail>(sql.scheduledMail, [now])
  }

  async nextDeadlines(): Promise<{ readonly expiresAt: QueueTime | null; readonly warnAt: QueueTime | null }> {
    const [row] = await this.#deps.reading.query<{ expiresAt: QueueTime | null; warnAt: QueueTime | null }>(sql.nextDeadlines, [
      this.#deps.terms.owner,
    ])
    return row ?? { expiresAt: null, warnAt: null }
  }

  async destinations(): Promise<readonly DestinationRecord[]> {
    return (await this.#deps.reading.query<DestinationRow>(sql.ownDestinations, [this.#deps.terms.owner])).map(toDestination)
  }

  async maildropFiles(): Promise<readonly string[]> {
    return (await this.#deps.reading.query<{ name: string }>(intake.maildropFiles, [this.#deps.name])).map(({ name }) => name)
  }

  async #save(tx: Transaction, record: DestinationRecord): Promise<void> {
    const { name, deadUntil, probeInterval, suspension, siteStatus } = record
    const place: readonly [number, Shard, string, DestinationName] = [
      this.#deps.terms.owner,
      tx.shardOf(name),
      JSON.stringify(record),
      name,
    ]
    const isOrdinary = deadUntil === null && probeInterval === null && suspension === null
    const { by = null, until = null, reason = null } = suspension ?? {}
    const values = [deadUntil, probeInterval, by, until, reason === null ? null : storableText(reason), fromStatus(siteStatus)]
    tx.told(
      await tx.query<{ shard: Shard }>(
        isOrdinary ? sql.forgetDestination : sql.saveDestination,
        isOrdinary ? place : [...place, ...values],
      ),
    )
  }

  async #prune(tx: Transaction, limits: PruneLimits): Promise<{ readonly more: boolean }> {
    const { historyBefore, historyCount, trashBefore, requestsBefore } = limits
    const [trash, history, operated, requests] = await Promise.all([
      tx.query<{ id: MessageId }>(sql.oldestTrash, [trashBefore, TRASH_SLICE]),
      tx.query(sql.pruneHistory, [historyBefore, historyCount, HISTORY_SLICE]),
      runRecord(tx, FORGET_OPERATED, historyBefore),
      runRecord(tx, FORGET_REQUESTS, requestsBefore),
      ...foldTraffic.map((text) => tx.query(text)),
      tx.query(sql.forgetOrigins, [historyBefore, HISTORY_SLICE]),
    ])
    if (trash.length > 0)
      await this.#deps.operating.purge(
        tx,
        trash.map(({ id }) => id),
        trashBefore,
      )
    return { more: operated || requests || trash.length === TRASH_SLICE || history.length === HISTORY_SLICE }
  }
}

async function endSchedules(tx: Transaction, now: QueueTime) {
  const ended = await tx.query<{ id: MessageId }>(sql.endSchedules, [now, SCHEDULES_SLICE])
  const [row] = await tx.query<{ next: QueueTime | null }>(sql.nextScheduled)
  return { ended: ended.map(({ id }) => id), next: row?.next ?? null }
}
