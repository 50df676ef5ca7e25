/** Plots of the series of the queue: flow, backlog, age of the oldest message, delay of delivered mail, and deferrals by name. */
import type { Axis, Mark, Plot, Series } from '../../presentation/plots/plot.ts'
import { lookOf, type Look } from '../../presentation/plots/series-look.ts'
import { svgPlot } from '../../presentation/plots/svg-plot.ts'
import { html, type Html } from '../../presentation/html.ts'
import type { SeriesJson } from '../../resources/series-json.ts'
import { markText, waitingIn, type SeriesValues } from '../../queries/counts/series-text.ts'
import { HOUR, SECOND } from '../../system/clock.ts'
import { instantOf } from '../markup/times.ts'
import type { View } from '../markup/view.ts'

export const FLOW_LINES = [
  ['accepted', 'busy'],
  ['delivered', 'good'],
  ['deferred', 'warn'],
  ['bounced', 'bad'],
] as const

/** Dashes as of all plots, in the colours of the states. */
export const FLOW_LOOKS: readonly Look[] = FLOW_LINES.map(([, tone], i) => ({ ...lookOf(i), colour: `var(--${tone})` }))

/** Names of causes or destinations that have a line of their own. */
export const NAMES_DRAWN = 6

/** Begin of the interval of the first mail of the queue; null when the first mail came before the series. */
export function firstMailOf(flow: SeriesJson): number | null {
  const first = flow.series[0]?.values['accepted']?.findIndex((value) => value !== null) ?? -1
  return first <= 0 ? null : instantOf(flow.from + first * flow.step)
}

/** In pixels, without the labels. */
const HEIGHT = 150

/** The end of a series: that of its last interval, or the present in an interval that has not ended. */
const endOf = ({ to, as_of: now }: SeriesJson): number => Math.min(to, now)

/** Values at the begin of their intervals, up to the end of the last one. Intervals without a value are left out. */
function stepsOf(series: SeriesJson, values: SeriesValues = []): Series['points'] {
  const { from, step } = series
  const points = values.flatMap((value, slot) => (value === null ? [] : [[instantOf(from + slot * step), value] as const]))
  const [last, slots] = [points.at(-1), values.findLastIndex((value) => value !== null) + 1]
  return last === undefined ? [] : [...points, [Math.min(instantOf(from + slots * step), instantOf(endOf(series))), last[1]]]
}

const scaled = (values: SeriesValues = [], factor: number): SeriesValues => values.map((value) => (value === null ? null : value * factor))

/** The unit of rates, by the length of the intervals: its title, and seconds. */
const rateOf = ({ step }: SeriesJson) =>
  step * SECOND >= HOUR ? { title: 'recipients per hour', per: 3_600 } : { title: 'recipients per minute', per: 60 }

/** Seconds of an interval that has not ended before its rate is drawn: that of some minutes is no rate of an hour. */
const LEAST_SECONDS = 900

interface Rated {
  /** Seconds of a rate. */
  readonly per: number
  /** Time of the first mail of the queue; null when it was before the series. */
  readonly firstMail: number | null
}

/**
 * Recipients per `per` seconds. An interval with the first mail, or that has not ended, counts as long as there was mail in it, and as a minute at
 * least: traffic is counted by minute. When it has just begun, it has no rate, unless there is no other.
 */
function ratesIn(series: SeriesJson, counts: SeriesValues = [], { per, firstMail }: Rated): SeriesValues {
  const { from, step, as_of: now } = series
  const first = firstMail === null ? from : firstMail / SECOND
  const hasOther = counts.slice(0, -1).some((value) => value !== null)
  return counts.map((value, slot) => {
    const begin = from + slot * step
    const seconds = Math.max(60, Math.min(begin + step, now) - Math.max(begin, first))
    return value === null || (seconds < Math.min(step, LEAST_SECONDS) && hasOther) ? null : (value * per) / seconds
  })
}

/** Recipients per second by the begin of their interval, from the first mail of the queue. */
export const ratePoints = (series: SeriesJson, kind: string, firstMail: number | null = null): Series['points'] =>
  stepsOf(series, ratesIn(series, series.series[0]?.values[kind], { per: 1, firstMail }))

const marksOf = ({ marks }: SeriesJson): readonly Mark[] => marks.map((one) => ({ label: markText(one), at: instantOf(one.time) }))

interface Chart {
  readonly title: string
  readonly y: Axis
  readonly lines: readonly Series[]
  readonly looks?: readonly Look[]
  readonly stepped?: boolean
  /** Time of the first mail of the queue; null when it was before the series. */
  readonly firstMail: number | null
}

function drawn({ clock }: View, series: SeriesJson, { title, y, lines, looks, firstMail, stepped = true }: Chart): Html {
  const from = instantOf(series.from)
  const first = firstMail ?? from
  const shown = lines.map((line) => ({
    ...line,
    points: line.points
      .filter(([time]) => time + series.step * SECOND > first)
      .map(([time, value]) => [Math.max(time, first), value] as const),
  }))
  const plot: Plot = {
    title,
    about: `${title}.`,
    kind: 'line',
    stepped,
    x: { title: 'time', scale: 'linear', values: clock, includes: [from, instantOf(endOf(series))] },
    y,
    series: shown,
    ...(first > from ? { shaded: [{ label: 'no mail before', from, to: first }] } : {}),
    marks: marksOf(series),
  }
  return shown.every(({ points }) => points.length === 0)
    ? html`<p class="faint">No values in this time.</p>`
    : svgPlot(plot, { height: HEIGHT, ...(looks === undefined ? {} : { looks }) })
}

export function flowChartOf(view: View, flow: SeriesJson): Html {
  const firstMail = firstMailOf(flow)
  const { title, per } = rateOf(flow)
  return drawn(view, flow, {
    title: `Flow, ${title}`,
    y: { title, scale: 'linear', includes: [0] },
    lines: FLOW_LINES.map(([kind]) => ({
      name: kind,
      points: stepsOf(flow, ratesIn(flow, flow.series[0]?.values[kind], { per, firstMail })),
    })),
    looks: FLOW_LOOKS,
    firstMail,
  })
}

/** Deferrals of the first names. The others are one line. */
export function deferredChart(
  view: View,
  series: SeriesJson,
  { others, firstMail }: { readonly others: string; readonly firstMail: number | null },
): Html {
  const { title, per } = rateOf(series)
  return drawn(view, series, {
    title: `Deferred, ${title}`,
    firstMail,
    y: { title, scale: 'linear', includes: [0] },
    lines: series.series.map(({ name, values }) => ({
      name: name === null || name === '' ? others : name,
      points: stepsOf(series, ratesIn(series, values['deferred'], { per, firstMail })),
    })),
  })
}

export function backlogChart(view: View, backlog: SeriesJson, firstMail: number | null): Html {
  const values = backlog.series[0]?.values ?? {}
  return drawn(view, backlog, {
    title: 'Recipients that wait',
    firstMail,
    y: { title: 'recipients', scale: 'linear', values: 'counts', includes: [0] },
    lines: [
      { name: 'waiting', points: stepsOf(backlog, waitingIn(backlog)) },
      { name: 'on hold', points: stepsOf(backlog, values['hold']) },
      { name: 'scheduled', points: stepsOf(backlog, values['scheduled']) },
    ],
  })
}

export const oldestChart = (view: View, backlog: SeriesJson, firstMail: number | null): Html =>
  drawn(view, backlog, {
    title: 'Age of the oldest message',
    firstMail,
    y: { title: 'age', scale: 'linear', values: 'durations', includes: [0] },
    lines: [{ name: 'oldest', points: stepsOf(backlog, scaled(backlog.series[0]?.values['oldest'], SECOND)) }],
  })

/** A logarithmic axis has no zero: shorter delays are drawn as 1 ms. */
export function delayChart(view: View, delay: SeriesJson, firstMail: number | null): Html {
  const values = delay.series[0]?.values ?? {}
  return drawn(view, delay, {
    title: 'Delay of delivered mail',
    firstMail,
    y: { title: 'delay', scale: 'logarithmic', values: 'durations' },
    lines: ['p50', 'p95', 'p99'].map((name) => ({
      name,
      points: stepsOf(
        delay,
        values[name]?.map((seconds) => (seconds === null ? null : Math.max(1, seconds * SECOND))),
      ),
    })),
  })
}
