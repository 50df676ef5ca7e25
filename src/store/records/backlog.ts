/** Mail that waits, once a minute: recipients by queue, and the age of the oldest message. After SERIES_MINUTES, the maximum of each hour. */
import { HOUR, MINUTE, type Duration, type QueueTime } from '../../system/clock.ts'
import { RecordTable } from './record-table.ts'
import { SERIES_HOURS, SERIES_MINUTES } from './series.ts'

export const BACKLOG_QUEUES = ['incoming', 'active', 'deferred', 'hold', 'scheduled'] as const

export interface Backlog extends Readonly<Record<(typeof BACKLOG_QUEUES)[number], number>> {
  /** Begin of the minute at whose end the queue was counted; of old samples, of the hour. */
  readonly at: QueueTime
  /** Age of the oldest message in the queue; 0 without mail. */
  readonly oldest: Duration
}

/** Time of the count. */
export const countedAt = ({ at }: Pick<Backlog, 'at'>): QueueTime => at + MINUTE

/** Recipients that wait for delivery. */
export const waitingOf = ({ incoming, active, deferred }: Backlog): number => incoming + active + deferred

const TABLE = new RecordTable<Backlog, 'at'>(
  'backlog',
  { at: 'number', incoming: 'number', active: 'number', deferred: 'number', hold: 'number', scheduled: 'number', oldest: 'number' },
  { key: ['at'] },
)

const VALUES = [...BACKLOG_QUEUES, 'oldest'] as const
const COLUMNS = VALUES.join(', ')
const LARGEST = VALUES.map((name) => `max(${name})`).join(', ')
const RAISED = VALUES.map((name) => `${name} = greatest(backlog.${name}, excluded.${name})`).join(', ')
const OLD = `at < :minutes and at % ${HOUR} <> 0`

const PRUNE = [
  `insert into backlog (at, ${COLUMNS}) select at / ${HOUR} * ${HOUR}, ${LARGEST} from backlog where ${OLD} group by 1
  on conflict (at) do update set ${RAISED}`,
  `delete from backlog where ${OLD}`,
]
const FORGET = 'delete from backlog where at < :hours'

const larger = (one: Backlog, other: Backlog): Backlog => ({
  at: one.at,
  incoming: Math.max(one.incoming, other.incoming),
  active: Math.max(one.active, other.active),
  deferred: Math.max(one.deferred, other.deferred),
  hold: Math.max(one.hold, other.hold),
  scheduled: Math.max(one.scheduled, other.scheduled),
  oldest: Math.max(one.oldest, other.oldest),
})

export const BACKLOGS = {
  /** Keeps the first sample of a minute: several nodes may take one. */
  add: TABLE.add(),
  prune: TABLE.write<[now: QueueTime]>({
    statements: (now) => [
      ...PRUNE.map((text) => ({ text, values: { minutes: now - SERIES_MINUTES } })),
      { text: FORGET, values: { hours: now - SERIES_HOURS } },
    ],
    held: (all, now) => {
      const rows = TABLE.heldIn(all)
      for (const [id, row] of rows) {
        const at = Math.floor(row.at / HOUR) * HOUR
        if (row.at >= now - SERIES_MINUTES || at === row.at) continue
        const known = rows.get(TABLE.idOf({ at }))
        rows.delete(id)
        rows.set(TABLE.idOf({ at }), known === undefined ? { ...row, at } : larger(known, row))
      }
      for (const [id, { at }] of rows) if (at < now - SERIES_HOURS) rows.delete(id)
    },
  }),
  /** The samples of a time, oldest first. */
  of: TABLE.read<[since: QueueTime, until: QueueTime], readonly Backlog[]>({
    statements: (since, until) => [
      { text: `select at, ${COLUMNS} from backlog where at >= :since and at < :until order by at`, values: { since, until } },
    ],
    answer: (rows) => rows as readonly Backlog[],
    held: (all, since, until) =>
      [...TABLE.heldIn(all).values()].filter(({ at }) => at >= since && at < until).toSorted((a, b) => a.at - b.at),
  }),
}
