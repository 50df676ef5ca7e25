/**
 * Runs of the `[schedule.NAME]` tables. A row is also the right to make the run: no two nodes have one of the same table and time, and
 * no two runs of a table go on at once.
 */
import type { Duration, QueueTime, WallTime } from '../../system/clock.ts'
import { MINUTE } from '../../system/clock.ts'
import { RecordTable } from './record-table.ts'

export interface ScheduleRun {
  /** Of the table [schedule.NAME]. */
  readonly name: string
  /** The time of the calendar; of a run by order, its begin. */
  readonly planned: WallTime
  /** Name of the operator; null for the calendar. */
  readonly orderedBy: string | null
  /** Node that makes the run, by its name. */
  readonly node: string
  readonly beganAt: QueueTime
  /** The node that makes the run is gone when it has not extended this time. */
  readonly until: QueueTime
  /** Null while the run goes on. */
  readonly endedAt: QueueTime | null
  readonly outcome: RunOutcome | null
  /** Result, or the reason of the failure. */
  readonly text: string
  /** File that the run wrote and that still counts for `keep`; null for none. */
  readonly file: string | null
  /** Identity of the file when it was written (scheduled-backup). */
  readonly identity: string | null
}

/** Of a run that goes on. */
export const NOT_ENDED = { endedAt: null, outcome: null, text: '', file: null, identity: null } as const satisfies Partial<ScheduleRun>

type RunOutcome = 'done' | 'failed'

/** Time for which a run belongs to its node without another sign of it. */
export const RUN_LEASE: Duration = 2 * MINUTE

/** Number of runs that are kept of a table, beside those with a file. */
export const KEPT_RUNS = 100

const RUNS = new RecordTable<ScheduleRun, 'name' | 'planned'>(
  'schedule_run',
  {
    name: 'text',
    planned: 'number',
    orderedBy: 'text',
    node: 'text',
    beganAt: 'number',
    until: 'number',
    endedAt: 'number',
    outcome: 'text',
    text: 'text',
    file: 'text',
    identity: 'text',
  },
  { key: ['name', 'planned'] },
)

const added = RUNS.add()
const goesOn = { sql: 'kept.ended_at is null', held: (kept: ScheduleRun) => kept.endedAt === null }

const byTime = (a: ScheduleRun, b: ScheduleRun): number => a.beganAt - b.beganAt || a.planned - b.planned

const COLUMNS = `name, planned, ordered_by as "orderedBy", node, began_at as "beganAt", "until", ended_at as "endedAt", outcome, text, file, identity`

/** The rows that are pruned: neither with a file nor going on, nor one of the newest. */
const OLD = `name = :name and file is null and ended_at is not null and began_at < (
  select min(began_at) from (select began_at from schedule_run where name = :name order by began_at desc limit ${KEPT_RUNS}) as newest)`

export const SCHEDULE_RUNS = {
  /** Begins a run. Answers false when a node has made or makes it, and while another run of the table goes on. */
  begin: RUNS.once<[run: ScheduleRun]>({
    statements: (run) => added.statements(run),
    held: (all, run) => {
      const isGoingOn = [...RUNS.heldIn(all).values()].some(({ name, endedAt }) => name === run.name && endedAt === null)
      return !isGoingOn && added.held(all, run)
    },
  }),
  /** Extends the time of a run that goes on. */
  extend: RUNS.change({ when: goesOn }),
  /** Ends a run that goes on, with its outcome. Answers false when it has ended before. */
  end: RUNS.change({ when: goesOn }),
  /** Changes the file of a run; null when it counts no more. */
  keepFile: RUNS.change(),
  /** Deletes the oldest runs of a table, except those with a file. */
  prune: RUNS.write<[name: string]>({
    statements: (name) => [{ text: `delete from schedule_run where ${OLD}`, values: { name } }],
    held: (all, name) => {
      const rows = RUNS.heldIn(all)
      const own = [...rows.values()].filter((run) => run.name === name).toSorted(byTime)
      const oldest = own.at(-KEPT_RUNS)?.beganAt ?? -Infinity
      for (const run of own) if (run.beganAt < oldest && run.endedAt !== null && run.file === null) rows.delete(RUNS.idOf(run))
    },
  }),
  /** The runs that go on, or whose node is gone. */
  unended: RUNS.all({ sql: 'ended_at is null', held: ({ endedAt }) => endedAt === null }),
  /** The runs of a table, oldest first. */
  of: RUNS.read<[name: string], readonly ScheduleRun[]>({
    statements: (name) => [{ text: `select ${COLUMNS} from schedule_run where name = :name order by began_at, planned`, values: { name } }],
    answer: (rows) => rows.map((row) => RUNS.decode(row)),
    held: (all, name) => [...RUNS.heldIn(all).values()].filter((run) => run.name === name).toSorted(byTime),
  }),
  /** The last run of each table. */
  last: RUNS.read<[], readonly ScheduleRun[]>({
    statements: () => [
      {
        text: `select ${COLUMNS} from schedule_run
where not exists (select 1 from schedule_run as later where later.name = schedule_run.name
  and (later.began_at, later.planned) > (schedule_run.began_at, schedule_run.planned))
order by name`,
        values: {},
      },
    ],
    answer: (rows) => rows.map((row) => RUNS.decode(row)),
    held: (all) => {
      const last = new Map([...RUNS.heldIn(all).values()].toSorted(byTime).map((run) => [run.name, run]))
      return [...last.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1))
    },
  }),
}
