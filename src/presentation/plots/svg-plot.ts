/**
 * Draws plots as SVG. The drawing needs no script: positions are shares of the width, so that text keeps its size at any width, values
 * appear as tooltips (`<title>`) and in a table below a plot of lines, and colours follow the text. The page must have PLOT_STYLE.
 */
import { html, type Html, type Part } from '../html.ts'
import { axisScale, axisTitle, rowScale, rowsOf, type AxisScale, type Tick } from './plot-axis.ts'
import type { Area, Mark, Plot, Series } from './plot.ts'
import { readingsOf, type Reading } from './plot-readings.ts'
import { lookOf, type Look } from './series-look.ts'

/** Style of plots. The classes of ticks hide those that are too near to each other at the width of the plot. */
export const PLOT_STYLE = `
.plot { container-type: inline-size; overflow-x: clip; font-size: 12px; line-height: 1.4 }
.plot > svg { display: block; width: calc(100% - 76px); margin: 26px 20px 44px 56px; overflow: visible }
.plot > svg.rows { width: calc(100% - 28px); margin-left: 8px }
.plot text { fill: currentcolor }
.plot .narrow { display: none }
.plot .band:hover, .plot .band.chosen { fill: currentcolor; fill-opacity: .1 }
.plot ul { display: flex; flex-wrap: wrap; gap: .2rem 1.5rem; margin: .4rem 0; padding: 0; list-style: none }
.plot li { overflow-wrap: anywhere }
.plot .values { overflow-x: auto }
.plot .values table { width: auto; border-collapse: collapse; font-variant-numeric: tabular-nums }
.plot .values th, .plot .values td { padding: .15rem 1.2rem .15rem 0; text-align: right; font-weight: 400; white-space: nowrap }
@container (max-width: 34rem) { .plot .wide { display: none } .plot .narrow { display: inline } }
`

const HEIGHT = 260
/** Height of a row with a name. */
const ROW = 40
/** Length of the horizontal axis in a wide and a narrow plot, and the gaps between the labels of both axes, in pixels. */
const ACROSS = { wide: 560, narrow: 260, gap: 46 }
const UP = { wide: HEIGHT, narrow: HEIGHT, gap: 32 }
/** Units of the curves' own coordinates along each axis. */
const UNITS = 1000
/** Number of points up to which a line has marks. */
const MOST_MARKS = 20

const percent = (share: number): string => `${Number((100 * share).toFixed(2))}%`
const unit = (share: number): number => Math.round(share * UNITS * 10) / 10

/** Path of a line through positions, which are shares of width and height from the lower left. */
function linePath(points: readonly (readonly [x: number, y: number])[], stepped = false): string {
  const [first, ...others] = points.map(([x, y]) => [unit(x), unit(1 - y)] as const)
  if (first === undefined) return ''
  return `M${first.join(' ')}${others.map(([x, y]) => (stepped ? `H${x}V${y}` : `L${x} ${y}`)).join('')}`
}

interface Scales {
  readonly x: AxisScale
  readonly y: AxisScale
}

function scalesOf({ kind, x, y, series, shaded = [] }: Plot, height: number): Scales {
  const names = rowsOf(y)
  const points = series.flatMap((one) => one.points)
  const across = [...points.map(([value]) => value), ...shaded.flatMap(({ from, to }) => [from, to])]
  // The length of a bar is its value, so that bars begin at zero.
  const begin = kind === 'bar' ? [0] : []
  return {
    x: axisScale(x, [...across, ...begin], ACROSS),
    y:
      names === null
        ? axisScale(
            y,
            points.map(([, value]) => value),
            { ...UP, wide: height, narrow: height },
          )
        : rowScale(names),
  }
}

const shownAt = ({ shown }: Tick): Html | null => (shown === 'always' ? null : html` class="${shown}"`)

const acrossTick = (tick: Tick): Html => {
  const at = percent(tick.at)
  return html`<g${shownAt(tick)}><line x1="${at}" x2="${at}" y2="100%" stroke="currentColor" stroke-opacity=".15" /><text x="${at}" y="100%" dy="19" text-anchor="middle">${tick.text}</text></g>`
}

const upTick = (tick: Tick, isRow: boolean): Html => {
  const at = percent(1 - tick.at)
  return html`<g${shownAt(tick)}><line x2="100%" y1="${at}" y2="${at}" stroke="currentColor" stroke-opacity=".15" />${
    isRow ? html`<text y="${at}" dy="-8">${tick.text}</text>` : html`<text x="-8" y="${at}" dy="4" text-anchor="end">${tick.text}</text>`
  }</g>`
}

/** A time over the whole height, with its label at the top, in one of three rows. */
const area = ({ label, from, to }: Area, i: number, { x }: Scales): Html =>
  html` <rect
      x="${percent(x.at(from))}"
      width="${percent(Math.max(0.001, x.at(to) - x.at(from)))}"
      height="100%"
      fill="currentColor"
      fill-opacity=".12"
    /><text x="${percent(x.at(from))}" dx="4" y="${12 + 14 * (i % 3)}">${label}</text>`

/** A line over the whole height, whose tooltip is the label. */
const markedInstant = ({ label, at }: Mark, { x }: Scales): Html => {
  const across = percent(x.at(at))
  return html`<g
    ><title>${label}</title
    ><line x1="${across}" x2="${across}" y2="100%" stroke="currentColor" stroke-opacity=".5" stroke-dasharray="2 4" /><svg
      x="${across}"
      overflow="visible"
    >
      <path d="M-5-9H5L0 0Z" fill="currentColor" /></svg
  ></g>`
}

/** A point as text: `doubling: 2h at 12h`. */
const pointText = ({ name }: Series, [x, y]: readonly [number, number], scales: Scales): string =>
  `${name}: ${scales.y.text(y)} at ${scales.x.text(x)}`

const drawnMark = ({ mark, colour }: Look, at: readonly [x: string, y: string], text: string): Html =>
  html`<svg x="${at[0]}" y="${at[1]}" overflow="visible">
    <title>${text}</title>
    <path d="${mark}" fill="${colour}" stroke="${colour}" stroke-width="1.5" />
  </svg>`

const marksOf = (one: Series, look: Look, scales: Scales): readonly Html[] =>
  one.points.map(([x, y]) => drawnMark(look, [percent(scales.x.at(x)), percent(1 - scales.y.at(y))], pointText(one, [x, y], scales)))

const strokeOf = ({ colour, dash }: Look): Html =>
  html`fill="none" stroke="${colour}" stroke-width="2"
  vector-effect="non-scaling-stroke"${dash.length === 0 ? null : html` stroke-dasharray="${dash.join(' ')}"`}`

/** A vertical band whose tooltip has the values of all lines. */
const band = ({ from, to, x, values }: Reading): Html =>
  html`<rect class="band" x="${percent(from)}" width="${percent(to - from)}" height="100%" fill="none" pointer-events="all"
    ><title>${[x, ...values.map(({ name, y }) => `${name}: ${y}`)].join('\n')}</title></rect
  >`

interface DrawnLines {
  readonly looks: readonly Look[]
  readonly scales: Scales
  readonly readings: readonly Reading[]
}

function lines({ series, stepped }: Plot, { looks, scales, readings }: DrawnLines): Part {
  // Later lines have dashes; they are drawn over earlier ones.
  const paths = series.map(({ points }, i) => {
    const path = linePath(
      points.map(([x, y]) => [scales.x.at(x), scales.y.at(y)] as const),
      stepped,
    )
    return html`<path d="${path}" ${strokeOf(looks[i] ?? lookOf(i))} />`
  })
  const marked = series.map((one, i) => (one.points.length > MOST_MARKS ? null : marksOf(one, looks[i] ?? lookOf(i), scales)))
  return html`<svg width="100%" height="100%" viewBox="0 0 ${UNITS} ${UNITS}" preserveAspectRatio="none" overflow="visible">${paths}</svg
    >${readings.map(band)}${marked}`
}

/** Horizontal bars below the names of their rows. */
const bars = ({ series }: Plot, { x, y }: Scales): Part =>
  series.flatMap(({ points }) =>
    points.map(([value, row]) => {
      const text = `${y.text(row)}: ${x.text(value)}`
      return html`<rect y="${percent(1 - y.at(row))}" width="${percent(x.at(value))}" height="10" fill="${lookOf(0).colour}"
        ><title>${text}</title></rect
      >`
    }),
  )

/** Description of the drawing for screen readers. */
function description({ kind, x, y, series, about }: Plot, scales: Scales): string {
  const ends = (texts: (value: number) => string, values: readonly number[]): string =>
    `${texts(Math.min(...values))} to ${texts(Math.max(...values))}`
  const facts = series.map(({ name, points }) => {
    if (kind === 'bar') return points.map(([value, row]) => `${scales.y.text(row)}: ${scales.x.text(value)}`).join('; ')
    if (points.length === 0) return `${name}: none`
    const across = ends(
      scales.x.text,
      points.map(([at]) => at),
    )
    if (rowsOf(y) !== null) return `${name}: ${points.length} points at ${across}`
    const up = ends(
      scales.y.text,
      points.map(([, at]) => at),
    )
    return `${name}: ${up} at ${across}`
  })
  return `${about} Horizontal axis: ${x.title}.${y.title === '' ? '' : ` Vertical axis: ${y.title}.`} ${facts.join('; ')}.`
}

/** The name of a series beside its mark or a piece of its line. */
const legend = ({ kind, series }: Plot, looks: readonly Look[], labels: readonly Part[]): Html | null =>
  series.length < 2
    ? null
    : html`<ul>
        ${series.map(({ name }, i) => {
          const look = looks[i] ?? lookOf(i)
          const sample = kind === 'line' ? html`<path d="M0 5H30" ${strokeOf(look)} />` : drawnMark(look, ['15', '5'], name)
          return html`<li><svg width="30" height="10" aria-hidden="true">${sample}</svg> ${labels[i] ?? name}</li>`
        })}
      </ul>`

/** The values of all lines, for readers of text and for the keyboard. */
const valuesTable = ({ title, series }: Plot, across: string, readings: readonly Reading[]): Html =>
  html`<details class="values">
    <summary>Values</summary>
    <table>
      <caption>
        ${title}
      </caption>
      <thead>
        <tr>
          <th scope="col">${across}</th>
          ${series.map(({ name }) => html`<th scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${readings.map(
          ({ x, values }) =>
            html`<tr>
              <th scope="row">${x}</th>
              ${series.map((_, i) => html`<td>${values.find(({ of }) => of === i)?.y ?? '–'}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </details>`

interface Drawing {
  /** Looks of the series, by default in order. */
  readonly looks?: readonly Look[]
  /** Names of the series in the legend. */
  readonly labels?: readonly Part[]
  /** Height of the plot without its labels, in pixels. */
  readonly height?: number
}

/** Draws a plot with its legend, and a plot of lines with a table of its values. */
export function svgPlot(plot: Plot, { looks = plot.series.map((_, i) => lookOf(i)), labels = [], height = HEIGHT }: Drawing = {}): Html {
  const { kind, x, y, series, shaded = [], marks = [] } = plot
  if (series.every(({ points }) => points.length === 0)) return html``
  const scales = scalesOf(plot, height)
  const names = rowsOf(y)
  const across = axisTitle(x, Math.max(...series.flatMap(({ points }) => points.map(([value]) => value))))
  const readings = kind === 'line' ? readingsOf(plot, scales) : []
  const contents = {
    line: () => lines(plot, { looks, scales, readings }),
    scatter: () => series.map((one, i) => marksOf(one, looks[i] ?? lookOf(i), scales)),
    bar: () => bars(plot, scales),
  }
  return html`<div class="plot">
    ${names === null ? legend(plot, looks, labels) : null}
    <svg${names === null ? null : html` class="rows"`} height="${names === null ? height : names.length * ROW}" role="img">
      <title>${plot.title}</title><desc>${description(plot, scales)}</desc>
      ${shaded.map((one, i) => area(one, i, scales))} ${scales.x.ticks.map(acrossTick)} ${scales.y.ticks.map((tick) => upTick(tick, names !== null))}
      <text x="50%" y="100%" dy="36" text-anchor="middle">${across}</text>
      ${names === null ? html`<text x="-48" y="-14">${axisTitle(y, 0)}</text>` : null} ${contents[kind]()} ${marks.map((one) => markedInstant(one, scales))}
    </svg>
    ${kind === 'line' ? valuesTable(plot, across, readings) : null}
  </div>`
}
