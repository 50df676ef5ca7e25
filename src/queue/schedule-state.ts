/** The `[schedule.NAME]` tables with their next and last runs. */
import type { ScheduleTable } from '../config/values/tables/schedule-table.ts'
import type { RecordReader } from '../store/records/records.ts'
import type { ScheduleRun } from '../store/records/schedule-run.ts'
import type { Clock, QueueTime, WallTime } from '../system/clock.ts'

export interface ScheduleState {
  readonly table: ScheduleTable
  readonly next: WallTime | null
  /** Null before the first run. */
  readonly last: ScheduleRun | null
}

export type Schedules = ReadonlyMap<string, ScheduleTable>

/** Reads the states, by name. Makes no statement without tables. */
export async function scheduleStates(
  { records }: { readonly records: Pick<RecordReader, 'scheduleRuns'> },
  tables: Schedules,
  clock: Pick<Clock, 'wall'>,
): Promise<readonly ScheduleState[]> {
  if (tables.size === 0) return []
  const last = new Map((await records.scheduleRuns.last()).map((run) => [run.name, run]))
  const now = clock.wall.now()
  return [...tables.values()]
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((table) => ({ table, next: table.times.next(now), last: last.get(table.name) ?? null }))
}

type RunState = 'running' | 'done' | 'failed'

/** A run whose node is gone has failed. */
export const runState = ({ outcome, until }: Pick<ScheduleRun, 'outcome' | 'until'>, now: QueueTime): RunState =>
  outcome ?? (until > now ? 'running' : 'failed')

export const NODE_GONE = 'its node ended before the run did'

/** Result of the run, or the reason of its failure; empty while it goes on. */
export const runText = (run: ScheduleRun, now: QueueTime): string =>
  run.outcome === null && runState(run, now) === 'failed' ? NODE_GONE : run.text
