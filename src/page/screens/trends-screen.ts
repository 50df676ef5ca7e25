/** The queue over time: its flow, backlog, delay, the causes of deferrals, and what changed the relay. */
import type { NamedDimension } from '../../store/records/series.ts'
import type { SeriesJson } from '../../resources/series-json.ts'
import { markText, sumIn, trendSentence } from '../../queries/counts/series-text.ts'
import { asCommand } from '../markup/command-lines.ts'
import { downloads } from '../markup/downloads.ts'
import { choice, rangeField } from '../markup/fields.ts'
import { answer, heading, section, type Screen } from '../markup/frame.ts'
import { html, type Html, type Part } from '../../presentation/html.ts'
import { table, type Column } from '../markup/html-table.ts'
import { linkTo, queryText, type Query } from '../markup/links.ts'
import { shapeOf } from '../markup/marks.ts'
import { instantText, type TimeRange } from '../markup/time-range.ts'
import { clockTime, count } from '../markup/times.ts'
import type { View } from '../markup/view.ts'
import { backlogChart, deferredChart, delayChart, firstMailOf, flowChartOf, NAMES_DRAWN, oldestChart } from './series-plots.ts'
import { changesOf, type Change } from './trend-changes.ts'
import { breakable, destinationPart } from '../markup/long-words.ts'

export const TREND_RANGES = ['7d', '1h', '6h', '24h', '30d', '400d'] as const
const RANGES_IN_ORDER = ['1h', '6h', '24h', '7d', '30d', '400d'] as const

const SPLITS: Readonly<Record<NamedDimension, string>> = {
  destination: 'destination',
  provider: 'provider',
  sender_domain: 'sender domain',
  node: 'node',
}

export interface TrendQuery {
  readonly range: (typeof TREND_RANGES)[number]
  readonly from: string
  readonly to: string
  readonly split_by: NamedDimension | ''
}

export interface TrendSeries {
  readonly flow: SeriesJson
  readonly backlog: SeriesJson
  readonly delay: SeriesJson
  readonly causes: SeriesJson | null
  /** The flow of the largest names; null without a split. */
  readonly split: SeriesJson | null
  /** The flow of destinations in the last day and the day before. */
  readonly days: SeriesJson
}

interface TrendFacts {
  readonly query: TrendQuery
  /** The instants of `query`. */
  readonly time: TimeRange
  /** The dimensions that the client may see. */
  readonly dimensions: readonly NamedDimension[]
  /** Null when the range is refused. */
  readonly series: TrendSeries | null
  readonly problem: string | null
}

const FROM = { name: 'from', label: 'From' } as const
const TO = { name: 'to', label: 'To' } as const
/** The fields of a range, as a refusal names them. */
export const RANGE_FIELDS = [FROM, TO] as const

/** The range of the screen as parameters of the resource. */
export const rangeQuery = ({ range }: TrendQuery, { after, before }: TimeRange): Query =>
  after === undefined && before === undefined
    ? { since: range }
    : { from: instantText(after) || undefined, to: instantText(before) || undefined }

const rangeLinks = (view: View, { query, time }: TrendFacts): Html =>
  html`<nav class="choices" aria-label="Range of the charts">
    ${RANGES_IN_ORDER.map(
      (range) =>
        html`<a
          href="${linkTo(view, 'trends', { range: range === TREND_RANGES[0] ? null : range, split_by: query.split_by })}"
          ${range === query.range && time.after === undefined && time.before === undefined ? html` aria-current="true"` : null}
          >${range}</a
        >`,
    )}
  </nav>`

const form = (view: View, { query, time, dimensions }: TrendFacts): Html =>
  html`<form class="filter" action="${linkTo(view, 'trends')}" method="get">
    ${rangeField(view, { ...FROM, value: query.from, at: time.after })} ${rangeField(view, { ...TO, value: query.to, at: time.before })}
    ${choice('By', 'split_by', query.split_by, [
      { value: '', text: 'whole queue' },
      ...dimensions.map((dimension) => ({ value: dimension, text: SPLITS[dimension] })),
    ])}
    <button type="submit">Show</button>
  </form>`

type Named = SeriesJson['series'][number]

const nameLink = (view: View, dimension: NamedDimension, name: string | null): Part =>
  name === null || name === '' ? 'others' : dimension === 'destination' ? destinationPart(view, name) : name

const headingText = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`

const splitColumns = (view: View, dimension: NamedDimension): readonly Column<Named>[] => [
  { heading: headingText(SPLITS[dimension]), isTitle: true, cell: ({ name }) => nameLink(view, dimension, name) },
  ...['accepted', 'delivered', 'deferred', 'bounced', 'expired'].map((kind): Column<Named> => ({
    heading: headingText(kind),
    kind: 'number',
    cell: ({ values }) => count(sumIn(values[kind])),
  })),
]

function splitPart(view: View, split: SeriesJson, dimension: NamedDimension, firstMail: number | null): Html {
  const shown = { ...split, series: split.series.filter(({ name }) => name !== '').slice(0, NAMES_DRAWN) }
  return section(
    `Deferred by ${SPLITS[dimension]}`,
    html`<div class="panel-wide">${deferredChart(view, shown, { others: 'others', firstMail })}</div>
      ${table({
        caption: `Recipients by ${SPLITS[dimension]}, in whole hours`,
        columns: splitColumns(view, dimension),
        rows: split.series,
        empty: 'No mail in this time.',
      })}`,
  )
}

const changeColumns = (view: View): readonly Column<Change>[] => [
  { heading: 'Destination', isTitle: true, cell: ({ name }) => nameLink(view, 'destination', name) },
  { heading: 'Deferred more or less', kind: 'number', cell: ({ change }) => `${change > 0 ? '+' : '−'}${count(Math.abs(change))}` },
  { heading: 'Last 24 hours', kind: 'number', cell: ({ now }) => count(now) },
  { heading: 'The 24 hours before', kind: 'number', cell: ({ before }) => count(before) },
]

const markColumns = (view: View): readonly Column<SeriesJson['marks'][number]>[] => [
  { heading: 'Time', isTitle: true, cell: ({ time }) => clockTime(view, time) },
  { heading: 'Change', cell: (one) => breakable(markText(one)) },
  // A suspension is that of the queue, at whichever node it was asked for; the audit log names that one.
  { heading: 'Node', cell: ({ kind, node }) => (kind === 'suspended' || kind === 'resumed' ? null : node) },
]

const chart = (title: string, drawing: Html, below: Html): Html =>
  section(
    title,
    html`<div class="panel-wide">${drawing}</div>
      ${below}`,
  )

function charts(view: View, { query, time }: TrendFacts, { flow, backlog, delay, causes, split, days }: TrendSeries): Html {
  const firstMail = firstMailOf(flow)
  const files = (metric: string): Html => downloads(view, 'series', { metric, ...rangeQuery(query, time) }, { csv: 'CSV', json: 'JSON' })
  return html`${answer(trendSentence({ flow, backlog }))} ${chart('Flow', flowChartOf(view, flow), files('flow'))}
  ${query.split_by === '' || split === null ? null : splitPart(view, split, query.split_by, firstMail)}
  ${chart('Backlog', backlogChart(view, backlog, firstMail), files('backlog'))}
  ${section('Age of the oldest message', html`<div class="panel-wide">${oldestChart(view, backlog, firstMail)}</div>`)}
  ${chart('Delay of delivered mail', delayChart(view, delay, firstMail), files('delay'))}
  ${causes === null ? null : chart('Deferred by cause', deferredChart(view, causes, { others: 'other causes', firstMail }), files('causes'))}
  ${section(
    'Largest changes',
    table({
      caption: 'Destinations whose deferrals changed most',
      columns: changeColumns(view),
      rows: changesOf(days),
      empty: 'No destination has more or fewer deferrals than a day before.',
    }),
  )}
  ${section(
    'Marks',
    table({
      caption: 'Changes of the relay, the newest first',
      columns: markColumns(view),
      rows: flow.marks.toReversed(),
      empty: 'Nothing changed the relay in this time.',
    }),
  )}`
}

export function trendsScreen(view: View, facts: TrendFacts): Screen {
  const { query, time, series, problem } = facts
  const asked = rangeQuery(query, time)
  return {
    title: 'Trends',
    place: 'trends',
    main: html`${heading('Trends', 'The queue over time.', rangeLinks(view, facts))} ${form(view, facts)}
    ${problem === null ? null : html`<p class="problem" role="alert">${shapeOf('warning')} ${problem}</p>`}
    ${series === null ? null : charts(view, facts, series)}
    ${asCommand(
      ['status', ...Object.entries(asked).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, String(value)]))],
      {
        method: 'GET',
        path: `api/v1/series${queryText(asked)}`,
      },
    )}`,
  }
}
