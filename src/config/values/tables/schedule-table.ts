/** The `[schedule.NAME]` tables: work at times of the calendar. */
import type { RunTimes } from '../../../calendar/run-times.ts'
import type { Duration } from '../../../system/clock.ts'

/** Work of a table, with its own members. */
export type ScheduledAction =
  /** Copies the queue to the file `to`, and keeps the newest `keep` files of the table; null keeps all. */
  | { readonly do: 'backup'; readonly to: string; readonly keep: number | null }
  | { readonly do: 'report'; readonly notify: readonly string[] }
  /** `duration` is the time after which the suspension ends by itself; null for never. */
  | { readonly do: 'suspend'; readonly destinations: readonly string[]; readonly duration: Duration | null }
  | { readonly do: 'resume' | 'flush'; readonly destinations: readonly string[] }
  | { readonly do: 'check domain'; readonly domains: readonly string[] }

export type ActionName = ScheduledAction['do']

export interface ScheduleTable {
  readonly name: string
  /** Cron expression of five fields, or six with seconds. */
  readonly at: string
  /** Time zone of `at`, `{date}` and `{time}`. */
  readonly zone: string
  readonly times: RunTimes
  readonly action: ScheduledAction
  /** Position of the heading. */
  readonly where: string
}

/** Members of each work; a member is required unless it ends with `?`. */
export const ACTION_MEMBERS = {
  backup: ['to', 'keep?'],
  report: ['notify'],
  suspend: ['destinations', 'for?'],
  resume: ['destinations'],
  flush: ['destinations'],
  'check domain': ['domains'],
} as const satisfies Readonly<Record<ActionName, readonly string[]>>

export const ACTION_NAMES = Object.keys(ACTION_MEMBERS) as readonly ActionName[]

/** Members of the tables and their meanings. */
export const SCHEDULE_MEMBERS = {
  at: 'cron expression: minute, hour, day of month, month and day of week, with a field of seconds before them if there are six',
  zone: 'time zone of `at`, `{date}` and `{time}`, such as `Europe/Berlin`; `UTC` when absent',
  do: ACTION_NAMES.map((name) => `\`${name}\``).join(', '),
  to: 'absolute path of the file of a backup, in which `{date}` is `2026-11-28` and `{time}` is `023000`',
  keep: 'number of files to keep: older ones that this table wrote are removed',
  notify: 'addresses that get the report',
  destinations: 'names of destinations, or patterns in which `*` is any text',
  for: 'time after which the suspension ends by itself',
  domains: 'recipient domains to check, as `deferd check domain` does',
} as const

export type ScheduleMember = keyof typeof SCHEDULE_MEMBERS

export const isScheduleMember = (key: string): key is ScheduleMember => Object.hasOwn(SCHEDULE_MEMBERS, key)
