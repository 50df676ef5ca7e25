/** The traffic of the queue as a chart: recipients accepted, delivered, deferred and bounced per second, in one scale. */
import type { SeriesJson } from '../../resources/series-json.ts'
import type { NowJson } from '../../resources/status-json.ts'
import type { Area, Plot } from '../../presentation/plots/plot.ts'
import { svgPlot } from '../../presentation/plots/svg-plot.ts'
import { html, type Html } from '../../presentation/html.ts'
import { section } from '../markup/frame.ts'
import { linkTo } from '../markup/links.ts'
import { count, instantOf, rate } from '../markup/times.ts'
import type { View } from '../markup/view.ts'
import { FLOW_LINES, FLOW_LOOKS, ratePoints } from './series-plots.ts'

export const FLOW_RANGES = ['1h', '6h', '24h'] as const
type FlowRange = (typeof FLOW_RANGES)[number]

export interface FlowSeries {
  readonly range: FlowRange
  readonly flow: SeriesJson
}

const RANGE_TEXTS: Readonly<Record<FlowRange, string>> = { '1h': 'last hour', '6h': 'last 6 hours', '24h': 'last day' }

/** In pixels, without the labels. */
const HEIGHT = 150

function flowPlot({ clock }: View, { range, flow }: FlowSeries): Plot {
  const series = FLOW_LINES.map(([kind]) => ({ name: kind, points: ratePoints(flow, kind) }))
  const [first, to] = [instantOf(flow.from), instantOf(flow.to)]
  const from = series[0]?.points[0]?.[0] ?? to
  const empty: readonly Area[] = from > first ? [{ label: 'no mail before', from: first, to: from }] : []
  return {
    title: `Recipients per second, ${RANGE_TEXTS[range]}`,
    about: 'Recipients per second.',
    kind: 'line',
    stepped: true,
    x: { title: 'time', scale: 'linear', values: clock, includes: [first, to] },
    y: { title: 'recipients per second', scale: 'linear', includes: [0] },
    shaded: empty,
    series,
  }
}

/** `accepted 3.6/s, 12,960 in the last hour` */
const labelOf = (kind: (typeof FLOW_LINES)[number][0], now: NowJson | null): Html =>
  now === null
    ? html`${kind}`
    : html`${kind} <strong data-live="rates/last_10s/${kind}" data-form="rate">${rate(now.rates?.last_10s[kind] ?? 0)}</strong>/s
        <span class="faint"
          ><span data-live="last_hour/${kind}" data-form="count">${count(now.last_hour[kind])}</span> in the last hour</span
        >`

/** The chart alone. Browsers ask for it again when an interval has ended. */
export function flowChart(view: View, series: FlowSeries, now: NowJson | null): Html {
  const ended = instantOf(series.flow.to + series.flow.step)
  return html`<div
    class="chart"
    data-chart="${linkTo(view, 'charts/flow', { range: series.range })}"
    data-wait="${Math.max(1_000, ended - view.now)}"
  >
    ${
      ratePoints(series.flow, 'accepted').length === 0
        ? html`<p class="faint">No figures of the ${RANGE_TEXTS[series.range]} yet: those of mail follow when its minute has ended.</p>`
        : svgPlot(flowPlot(view, series), { looks: FLOW_LOOKS, labels: FLOW_LINES.map(([kind]) => labelOf(kind, now)), height: HEIGHT })
    }
  </div>`
}

const rangeLinks = (view: View, chosen: FlowRange): Html =>
  html`<nav class="choices" aria-label="Range of the chart">
    ${FLOW_RANGES.map(
      (range) =>
        html`<a href="${linkTo(view, '', { range: range === '1h' ? null : range })}" ${range === chosen ? html` aria-current="true"` : null}
          >${range}</a
        >`,
    )}
    <a href="${linkTo(view, 'trends')}">7d</a>
  </nav>`

export const flowSection = (
  view: View,
  series: FlowSeries,
  { now, about }: { readonly now: NowJson | null; readonly about: Html | null },
): Html =>
  section('Flow', html`<div class="panel-wide">${flowChart(view, series, now)} ${about}</div>`, { aside: rangeLinks(view, series.range) })
