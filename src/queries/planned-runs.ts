/** Schedules with their runs, for the API and for commands. */
import { scheduleStates, type Schedules } from '../queue/schedule-state.ts'
import { scheduleDetailsJson, scheduleJson, type ScheduleDetailsJson, type ScheduleJson } from '../resources/schedule-json.ts'
import type { RecordReader } from '../store/records/records.ts'
import type { Clock } from '../system/clock.ts'

export interface PlannedRunsView {
  readonly reader: { readonly records: Pick<RecordReader, 'scheduleRuns'> }
  readonly clock: Pick<Clock, 'now' | 'wall'>
}

export async function plannedRuns(
  { reader, clock }: PlannedRunsView,
  tables: Schedules,
): Promise<{ readonly schedules: readonly ScheduleJson[] }> {
  const states = await scheduleStates(reader, tables, clock)
  return { schedules: states.map((one) => scheduleJson(one, clock.now(), clock.wall)) }
}

/** One schedule; undefined when no table has the name. */
export async function plannedRunsOf(
  { reader, clock }: PlannedRunsView,
  tables: Schedules,
  name: string,
): Promise<ScheduleDetailsJson | undefined> {
  const table = tables.get(name)
  if (table === undefined) return undefined
  const [state] = await scheduleStates(reader, new Map([[name, table]]), clock)
  if (state === undefined) return undefined
  return scheduleDetailsJson(state, await reader.records.scheduleRuns.of(name), clock.now(), clock.wall)
}
