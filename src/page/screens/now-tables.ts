/** Tables below the figures of the first screen: limits of the queue, planned runs, and access tokens. */
import type { NowJson } from '../../resources/status-json.ts'
import type { ScheduleJson } from '../../resources/schedule-json.ts'
import { html, type Html } from '../../presentation/html.ts'
import { bar } from '../markup/charts.ts'
import { section } from '../markup/frame.ts'
import { table, type Column } from '../markup/html-table.ts'
import { marked } from '../markup/marks.ts'
import { longText } from '../markup/reply.ts'
import { byteSize, clockTime, count, distance, due, span } from '../markup/times.ts'
import type { View } from '../markup/view.ts'

const scheduleColumns = (view: View): readonly Column<ScheduleJson>[] => [
  { heading: 'Schedule', isTitle: true, cell: (one) => one.schedule },
  { heading: 'Does', cell: (one) => one.do },
  { heading: 'Next run', cell: ({ next_time: next }) => (next === null ? 'never' : due(view, next)) },
  {
    heading: 'Last run',
    cell: ({ last_run: last }) => (last === null ? 'none yet' : html`${last.result}, ${distance(view, last.begin_time)}`),
  },
  { heading: 'Result', kind: 'reply', cell: ({ last_run: last }) => (last === null ? null : longText(last.text)) },
]

const tokenColumns: readonly Column<NowJson['oauth'][number]>[] = [
  { heading: 'Table', isTitle: true, cell: ({ oauth }) => html`<code>[oauth.${oauth}]</code>` },
  { heading: 'User', cell: ({ user }) => user ?? 'all' },
  { heading: 'State', cell: ({ failing: isFailing }) => (isFailing ? marked('failing') : marked('open', 'usable')) },
  { heading: 'Ends', cell: ({ left }) => (left === null ? 'no token' : `in ${span(left * 1_000)}`) },
  { heading: 'Problem', kind: 'reply', cell: ({ problem }) => (problem === null ? null : longText(problem)) },
]

/** The access tokens for logins at next hops. */
const accessTokens = ({ oauth }: NowJson): Html | null =>
  oauth.length === 0
    ? null
    : section(
        'Access tokens of next hops',
        table({
          caption: 'Access tokens',
          columns: tokenColumns,
          rows: oauth,
          empty: '',
          kind: 'tokens',
          renewedBy: ({ oauth: name, user }) => `${name} ${user ?? ''}`,
        }),
      )

/** Work at times of the calendar. */
const plannedRuns = (view: View, { schedules }: NowJson): Html | null =>
  schedules.length === 0
    ? null
    : section(
        'Planned runs',
        table({
          caption: 'Schedules with their next and last runs',
          columns: scheduleColumns(view),
          rows: schedules,
          empty: 'No schedule is configured.',
          kind: 'schedules',
          renewedBy: ({ schedule }) => schedule,
        }),
      )

type Limit = NowJson['limits'][number]

const sizeOf = ({ measure }: Limit, value: number): string => (measure === 'bytes' ? byteSize(value) : count(value))

interface Intake {
  /** True at the limit of the whole queue. */
  readonly isQueueFull: boolean
  /** True while all nodes of a shared queue drain. */
  readonly isDrained: boolean
}

/** Outcome of new mail: the limit of the whole queue refuses that of all shares. */
function newMailPart(view: View, { share, refuses, refused_since: since }: Limit, { isQueueFull, isDrained }: Intake): Html {
  if (refuses) return html`${marked('refusing', 'refused')}${since === null ? null : html` since ${clockTime(view, since)}`}`
  if (isDrained) return html`${marked('refusing', 'refused')}: no node is active`
  return share !== null && isQueueFull ? html`${marked('refusing', 'refused')} with the whole queue` : marked('open', 'accepted')
}

const limitColumns = (view: View, intake: Intake): readonly Column<Limit>[] => [
  { heading: 'Limit', isTitle: true, cell: ({ share }) => share ?? 'whole queue' },
  { heading: 'Of', cell: ({ measure }) => measure },
  {
    heading: 'Used',
    kind: 'number',
    cell: (one) =>
      html`${sizeOf(one, one.used)} of
      ${sizeOf(one, one.limit)}${one.limit === 0 ? null : bar(one.used / one.limit, one.refuses ? 'bad' : 'busy')}`,
  },
  {
    heading: 'New mail',
    cell: (one) => newMailPart(view, one, intake),
  },
]

/** Place of the limits on the screen. */
export const LIMITS = 'limits'

const limitsSection = (view: View, { limits, attention }: NowJson): Html | null =>
  limits.length === 0
    ? null
    : section(
        'Limits of the queue',
        table({
          caption: 'Limits',
          columns: limitColumns(view, {
            isQueueFull: limits.some(({ share, refuses }) => share === null && refuses),
            isDrained: attention.some(({ kind }) => kind === 'nodes-draining'),
          }),
          rows: limits,
          empty: '',
          kind: 'limits',
          renewedBy: ({ share, measure }) => `${measure} ${share ?? ''}`,
        }),
        { id: LIMITS },
      )

export const nowTables = (view: View, now: NowJson): Html =>
  html`${limitsSection(view, now)} ${plannedRuns(view, now)} ${accessTokens(now)}`
