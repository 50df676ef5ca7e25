/** Tables `[schedule.NAME]` and their runs in JSON. */
import { z } from 'zod'
import type { ScheduledAction } from '../config/values/tables/schedule-table.ts'
import { runState, runText, type ScheduleState } from '../queue/schedule-state.ts'
import type { ScheduleRun } from '../store/records/schedule-run.ts'
import { SECOND, type QueueTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { textOrNull, time, timeOrNull, type Json } from './members.ts'

const runShape = z.object({
  planned_time: time.describe('time of the calendar; of a run by order, its begin'),
  ordered_by: textOrNull.describe('null for the calendar'),
  node: z.string(),
  begin_time: time,
  end_time: timeOrNull,
  result: z.enum(['running', 'done', 'failed']),
  text: z.string().describe('what was done, or why it failed'),
  file: textOrNull.describe('file that counts for `keep`'),
})

export type ScheduleRunJson = Json<typeof runShape>

export const scheduleMembers = {
  schedule: z.string().describe('name of the table `[schedule.NAME]`'),
  do: z.string(),
  at: z.string(),
  zone: z.string(),
  next_time: timeOrNull,
  last_run: runShape.nullable(),
}

const statusShape = z.object(scheduleMembers)

export type ScheduleJson = Json<typeof statusShape>

export const schedulesShape = z.object({ schedules: z.array(statusShape) }).meta({ id: 'Schedules' })

export const scheduleShape = z
  .object({
    ...scheduleMembers,
    members: z.record(z.string(), z.union([z.string(), z.number(), z.array(z.string())])).describe('members of its work; times in seconds'),
    next_times: z.array(time).describe('the next runs, at most five'),
    runs: z.array(runShape).describe('the last runs, newest first'),
  })
  .meta({ id: 'Schedule' })

export type ScheduleDetailsJson = Json<typeof scheduleShape>

const scheduleRunJson = (run: ScheduleRun, now: QueueTime, wall: WallView): ScheduleRunJson => ({
  planned_time: run.planned / SECOND,
  ordered_by: run.orderedBy,
  node: run.node,
  begin_time: wall.seconds(run.beganAt),
  end_time: wall.secondsOrNull(run.endedAt),
  result: runState(run, now),
  text: runText(run, now),
  file: run.file,
})

export const scheduleJson = ({ table, next, last }: ScheduleState, now: QueueTime, wall: WallView): ScheduleJson => ({
  schedule: table.name,
  do: table.action.do,
  at: table.at,
  zone: table.zone,
  next_time: next === null ? null : next / SECOND,
  last_run: last === null ? null : scheduleRunJson(last, now, wall),
})

/** Number of the next runs of a table that are shown. */
const SHOWN_TIMES = 5

function membersOf(action: ScheduledAction): ScheduleDetailsJson['members'] {
  switch (action.do) {
    case 'backup':
      return { to: action.to, ...(action.keep === null ? {} : { keep: action.keep }) }
    case 'report':
      return { notify: [...action.notify] }
    case 'suspend':
      return { destinations: [...action.destinations], ...(action.duration === null ? {} : { for: action.duration / SECOND }) }
    case 'resume':
    case 'flush':
      return { destinations: [...action.destinations] }
    case 'check domain':
      return { domains: [...action.domains] }
  }
}

/** A table with all its kept runs. */
export function scheduleDetailsJson(
  state: ScheduleState,
  runs: readonly ScheduleRun[],
  now: QueueTime,
  wall: WallView,
): ScheduleDetailsJson {
  const next = state.table.times.following(wall.of(now), SHOWN_TIMES)
  return {
    ...scheduleJson(state, now, wall),
    members: membersOf(state.table.action),
    next_times: next.map((at) => at / SECOND),
    runs: runs.toReversed().map((run) => scheduleRunJson(run, now, wall)),
  }
}
