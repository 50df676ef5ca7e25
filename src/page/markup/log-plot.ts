/** Curves over two logarithmic axes as SVG. Each curve has its own dashes besides its colour, and a table has the same values. */
import { html, type Html } from './html.ts'
import { span } from './times.ts'

export interface Curve {
  readonly name: string
  /** Positions in ms, in ascending order of x. */
  readonly points: readonly (readonly [x: number, y: number])[]
}

const WIDTH = 720
const HEIGHT = 300
const LEFT = 56
const BOTTOM = 34
const TOP = 10
const RIGHT = 16

const MINUTE = 60_000
const TICKS = [1, 5, 30, 60, 240, 720, 1440, 2880, 7200].map((minutes) => minutes * MINUTE)

interface Range {
  readonly from: number
  readonly to: number
}

const rangeOf = (values: readonly number[]): Range => ({ from: Math.max(1_000, Math.min(...values)), to: Math.max(...values, 60_000) })

/** Share of a logarithmic range. */
const shareOf = (value: number, { from, to }: Range): number => Math.log(Math.max(value, from) / from) / Math.log(to / from)

const rounded = (value: number): number => Math.round(value * 10) / 10

/** Draws curves of waits by lengths of outages, all in ms. */
export function logPlot(curves: readonly Curve[], label: string): Html {
  const all = curves.flatMap(({ points }) => points)
  if (all.length === 0) return html``
  const [across, up] = [rangeOf(all.map(([x]) => x)), rangeOf(all.map(([, y]) => y))]
  const x = (value: number): number => rounded(LEFT + shareOf(value, across) * (WIDTH - LEFT - RIGHT))
  const y = (value: number): number => rounded(HEIGHT - BOTTOM - shareOf(value, up) * (HEIGHT - BOTTOM - TOP))
  const within = ({ from, to }: Range) => TICKS.filter((tick) => tick >= from && tick <= to)
  return html`<svg class="plot" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}">
    ${within(across).map(
      (tick) =>
        html`<path class="grid" d="${`M${x(tick)} ${TOP}V${HEIGHT - BOTTOM}`}" /><text
            x="${x(tick)}"
            y="${HEIGHT - BOTTOM + 16}"
            text-anchor="middle"
            >${span(tick, 1)}</text
          >`,
    )}
    ${within(up).map(
      (tick) =>
        html`<path class="grid" d="${`M${LEFT} ${y(tick)}H${WIDTH - RIGHT}`}" /><text x="${LEFT - 6}" y="${y(tick) + 4}" text-anchor="end"
            >${span(tick, 1)}</text
          >`,
    )}
    ${curves.map(({ points }, i) =>
      points.length === 0 ? null : html`<path class="curve curve-${i}" d="${`M${points.map(([a, b]) => `${x(a)} ${y(b)}`).join('L')}`}" />`,
    )}
  </svg>`
}

/** The name of a curve beside a piece of its line. */
export const legend = (names: readonly string[]): Html =>
  html`<ul class="legend">
    ${names.map(
      (name, i) =>
        html`<li>
          <svg viewBox="0 0 28 8" aria-hidden="true"><path class="curve curve-${i}" d="M0 4H28" /></svg> <code>${name}</code>
        </li>`,
    )}
  </ul>`
