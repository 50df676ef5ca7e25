/** Times at which the relay or its destinations were changed, for the charts of the queue. */
import type { QueueTime } from '../../system/clock.ts'
import { RecordTable, silent } from './record-table.ts'
import { SERIES_HOURS } from './series.ts'

/**
 * - `restart`: a node started;
 * - `configuration`: a reload changed parameters;
 * - `reload`: a reload changed none;
 * - `suspended`, `resumed`: of a destination or a provider.
 */
export const MARK_KINDS = ['restart', 'reload', 'configuration', 'suspended', 'resumed'] as const

export interface QueueMark {
  readonly at: QueueTime
  /** Name of the node. */
  readonly node: string
  readonly kind: (typeof MARK_KINDS)[number]
  /** The destination, the provider (`provider google`), or the version of the node. */
  readonly text: string
}

/** Number of marks that are kept. */
const MARKS_KEPT = 20_000
/** Number of marks that a read returns: the newest of its time. */
const MARKS_READ = 200

const TABLE = new RecordTable<QueueMark, 'at' | 'node' | 'kind' | 'text'>(
  'queue_mark',
  { at: 'number', node: 'text', kind: 'text', text: 'text' },
  { key: ['at', 'node', 'kind', 'text'] },
)

const byTime = (a: QueueMark, b: QueueMark): number => a.at - b.at

export const QUEUE_MARKS = {
  add: silent(TABLE.add()),
  prune: TABLE.write<[now: QueueTime]>({
    statements: (now) => [
      {
        text: `delete from queue_mark where at < :oldest
  or at < (select min(at) from (select at from queue_mark order by at desc limit ${MARKS_KEPT}) as newest)`,
        values: { oldest: now - SERIES_HOURS },
      },
    ],
    held: (all, now) => {
      const rows = TABLE.heldIn(all)
      const oldest = [...rows.values()].toSorted(byTime).at(-MARKS_KEPT)?.at ?? 0
      for (const [id, { at }] of rows) if (at < now - SERIES_HOURS || at < oldest) rows.delete(id)
    },
  }),
  /** The newest marks of a time, oldest first. */
  of: TABLE.read<[since: QueueTime, until: QueueTime], readonly QueueMark[]>({
    statements: (since, until) => [
      {
        text: `select at, node, kind, text from (
  select at, node, kind, text from queue_mark where at >= :since and at < :until order by at desc, node, kind, text limit ${MARKS_READ}) as newest
order by at, node, kind, text`,
        values: { since, until },
      },
    ],
    answer: (rows) => rows as readonly QueueMark[],
    held: (all, since, until) =>
      [...TABLE.heldIn(all).values()]
        .filter(({ at }) => at >= since && at < until)
        .toSorted(byTime)
        .slice(-MARKS_READ),
  }),
}
