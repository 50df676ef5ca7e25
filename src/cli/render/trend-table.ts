/** The queue over time as text: a row per interval, the causes of deferrals, and what changed the relay. */
import { sumIn, markText, trendSentence, waitingIn } from '../../queries/counts/series-text.ts'
import type { SeriesJson } from '../../resources/series-json.ts'
import { grouped, instantOf, localTime, span } from '../../presentation/text.ts'
import { SECOND, type Clock } from '../../system/clock.ts'
import type { Display } from './style.ts'
import { columnsFor, tableHeading, tableRow } from './table.ts'
import { wrapped } from './wrapping.ts'

interface ShownTrend {
  readonly flow: SeriesJson
  readonly backlog: SeriesJson
  readonly delay: SeriesJson
  readonly causes: SeriesJson
}

const FLOW = ['accepted', 'delivered', 'deferred', 'bounced'] as const

/** Lines of a table. */
function tableOf(headings: readonly string[], rows: readonly (readonly string[])[], display: Display): readonly string[] {
  const columns = columnsFor(headings, rows, display)
  return [tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))]
}

function intervals({ flow, backlog, delay }: ShownTrend, minuteOf: (seconds: number) => string): readonly (readonly string[])[] {
  const counts = flow.series[0]?.values ?? {}
  const slow = delay.series[0]?.values['p95'] ?? []
  return waitingIn(backlog).map((waiting, slot) => [
    minuteOf(flow.from + slot * flow.step),
    ...FLOW.map((kind) => numberText(counts[kind]?.[slot])),
    numberText(waiting),
    typeof slow[slot] === 'number' ? span(slow[slot] * SECOND) : '-',
  ])
}

const numberText = (value: number | null | undefined): string => (typeof value === 'number' ? grouped(value) : '-')

export function trendText(
  trend: ShownTrend,
  { clock, display }: { readonly clock: Pick<Clock, 'zone'>; readonly display: Display },
): string {
  const minuteOf = (seconds: number): string => localTime(instantOf(seconds), clock).slice(0, 16)
  const { causes, flow } = trend
  const deferred = causes.series.map(({ name, values }) => [
    name === '' ? 'other causes' : (name ?? ''),
    grouped(sumIn(values['deferred'])),
  ])
  const marks = flow.marks.map((one) => `${minuteOf(one.time)}  ${one.node}  ${markText(one)}`)
  return [
    ...wrapped(trendSentence(trend), display.width),
    '',
    ...tableOf(['FROM', ...FLOW, 'waiting', 'p95'], intervals(trend, minuteOf), display),
    ...(deferred.length === 0 ? [] : ['', ...tableOf(['CAUSE', 'deferred'], deferred, display)]),
    ...(marks.length === 0 ? [] : ['', 'MARKS', ...marks.flatMap((line) => wrapped(line, display.width))]),
  ]
    .map((line) => `${line}\n`)
    .join('')
}
