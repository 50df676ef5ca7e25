/**
 * Checks of domains that were ordered, one row for a domain and a domain of senders: the state of the last order, and the last report. A
 * row that is not ended is also the right to the check, so that no two nodes make the same one at once.
 */
import { DAY, MINUTE, type Duration, type QueueTime } from '../../system/clock.ts'
import { RecordTable } from './record-table.ts'

export interface DomainCheck {
  readonly domain: string
  /** Domain of the senders. */
  readonly sender: string
  readonly orderedBy: string
  /** Node that makes the check, by its name. */
  readonly node: string
  readonly beganAt: QueueTime
  /** Null while the check goes on. */
  readonly endedAt: QueueTime | null
  /** Reason why the check gave no report; null without one. */
  readonly failure: string | null
  /** The last report; null before the first one. */
  readonly report: object | null
}

/** A check that is not ended after this time has lost its node. */
export const CHECK_LEASE: Duration = 5 * MINUTE

/** Rows are deleted this long after the begin of the last check. */
export const CHECKS_KEPT_FOR: Duration = 7 * DAY

/** Number of kept rows. */
const MOST_CHECKS = 500

const CHECKS = new RecordTable<DomainCheck, 'domain' | 'sender'>(
  'domain_check',
  {
    domain: 'text',
    sender: 'text',
    orderedBy: 'text',
    node: 'text',
    beganAt: 'number',
    endedAt: 'number',
    failure: 'text',
    report: 'json',
  },
  { key: ['domain', 'sender'] },
)

/** True for a check that may be replaced: it has ended, or lost its node. */
const hasEnded = {
  sql: `(kept.ended_at is not null or kept.began_at <= excluded.began_at - ${CHECK_LEASE})`,
  held: (kept: DomainCheck, { beganAt }: DomainCheck) => kept.endedAt !== null || kept.beganAt <= beganAt - CHECK_LEASE,
}

const NEWEST = `select began_at from domain_check order by began_at desc limit ${MOST_CHECKS}`

export const DOMAIN_CHECKS = {
  /** Begins a check; the report of the one before stays. Answers false while the same check goes on. */
  begin: CHECKS.put({ only: ['orderedBy', 'node', 'beganAt', 'endedAt', 'failure'], when: hasEnded }),
  /** Ends a check, with a report or the reason why there is none. Answers false when another one has begun since. */
  end: CHECKS.change<Pick<DomainCheck, 'beganAt'>>({
    when: {
      sql: 'kept.ended_at is null and kept.began_at = :beganAt',
      held: (kept, { beganAt }) => kept.endedAt === null && kept.beganAt === beganAt,
    },
  }),
  /** Keeps a check that has ended. Answers false while the same one goes on, whose report is newer. */
  keep: CHECKS.put({ when: hasEnded }),
  of: CHECKS.find<[domain: string, sender: string]>('domain', 'sender'),
  all: CHECKS.all(),
  /** Deletes the rows of checks that began before a time, and the oldest ones beyond MOST_CHECKS. */
  prune: CHECKS.write<[before: QueueTime]>({
    statements: (before) => [
      {
        text: `delete from domain_check where began_at < :before or began_at < (select min(began_at) from (${NEWEST}) as newest)`,
        values: { before },
      },
    ],
    held: (all, before) => {
      const rows = CHECKS.heldIn(all)
      const newest = [...rows.values()].toSorted((a, b) => b.beganAt - a.beganAt).slice(0, MOST_CHECKS)
      const oldest = newest.at(-1)?.beganAt ?? -Infinity
      for (const row of rows.values()) if (row.beganAt < before || row.beganAt < oldest) rows.delete(CHECKS.idOf(row))
    },
  }),
}
