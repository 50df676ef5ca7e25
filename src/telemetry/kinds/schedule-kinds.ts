/** Kinds of events of the `[schedule.NAME]` tables. Programs get `schedule-failed` (events/published-kinds). */
import { line, logged, same, seconds } from '../../events/event-kind.ts'
import type { Duration, WallTime } from '../../system/clock.ts'

export interface PlannedRun {
  readonly schedule: string
  readonly action: string
  readonly planned: WallTime
}

export const SCHEDULE_KINDS = {
  'schedule-done': logged<PlannedRun & { readonly text: string; readonly took: Duration }>({
    level: 'info',
    about: 'a run of a table `[schedule.NAME]` has done its work',
    record: {
      ...same('schedule', 'action'),
      planned_time: ({ planned }) => seconds(planned),
      took: ({ took }) => seconds(took),
      text: ({ text }) => text,
    },
    lines: ({ schedule, action, text }) => line('master', `schedule ${schedule} (${action}): ${text}`),
  }),
  'schedule-skipped': logged<PlannedRun & { readonly why: string }>({
    level: 'warn',
    about: 'a run of a table `[schedule.NAME]` was skipped, with the reason',
    record: { ...same('schedule', 'action'), planned_time: ({ planned }) => seconds(planned), text: ({ why }) => why },
    lines: ({ schedule, action, why }) => line('master', `warning: schedule ${schedule} (${action}) was skipped: ${why}`),
  }),
}
