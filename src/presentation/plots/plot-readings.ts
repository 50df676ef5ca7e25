/** The values of all lines of a plot at the same place, for tooltips and tables. Pure. */
import type { AxisScale } from './plot-axis.ts'
import type { Plot, Series } from './plot.ts'

export interface Reading {
  /** Ends of its band, as shares of the horizontal axis. */
  readonly from: number
  readonly to: number
  readonly x: string
  /** Values of the series that have one there; `of` is the position of the series. */
  readonly values: readonly { readonly of: number; readonly name: string; readonly y: string }[]
}

interface Scales {
  readonly x: AxisScale
  readonly y: AxisScale
}

/** Maximum number of positions with a reading each. Of more positions, SAMPLES are read. */
const MOST_READINGS = 120
const SAMPLES = 40

/** The positions that are read, in order. */
function positionsOf(series: readonly Series[], { x }: Scales): readonly number[] {
  const all = [...new Set(series.flatMap(({ points }) => points.map(([value]) => value)))].toSorted((a, b) => a - b)
  if (all.length <= MOST_READINGS) return all
  const nearestTo = (share: number): number =>
    all.reduce((best, value) => (Math.abs(x.at(value) - share) < Math.abs(x.at(best) - share) ? value : best))
  return [...new Set(Array.from({ length: SAMPLES }, (_, i) => nearestTo((i + 0.5) / SAMPLES)))]
}

/** End of the last step, at which a point repeats its value; Infinity for a step that goes on. */
function endOfSteps(points: Series['points']): number {
  const [former, last] = [points.at(-2), points.at(-1)]
  return former !== undefined && last !== undefined && former[1] === last[1] ? last[0] : Infinity
}

/** The value of a series at a position: of the step there, or of the nearest point. Undefined outside the series. */
function valueAt({ points }: Series, at: number, { x }: Scales, isStepped: boolean): number | undefined {
  if (isStepped) return at >= endOfSteps(points) ? undefined : points.findLast(([value]) => value <= at)?.[1]
  const distance = (value: number): number => Math.abs(x.at(value) - x.at(at))
  const [first] = points
  if (first === undefined) return undefined
  const nearest = points.reduce((best, point) => (distance(point[0]) < distance(best[0]) ? point : best), first)
  return distance(nearest[0]) <= 1 / SAMPLES ? nearest[1] : undefined
}

/** The readings of a plot of lines, from left to right. A step is read from its begin to the next one. */
export function readingsOf({ series, stepped = false }: Plot, scales: Scales): readonly Reading[] {
  const positions = positionsOf(series, scales)
  const shares = positions.map(scales.x.at)
  return positions.flatMap((at, i) => {
    const share = shares[i] ?? 0
    const [before, after] = [shares[i - 1], shares[i + 1]]
    const from = stepped ? share : before === undefined ? 0 : (before + share) / 2
    const to = after === undefined ? 1 : stepped ? after : (share + after) / 2
    if (to <= from) return []
    const values = series.flatMap((one, of) => {
      const y = valueAt(one, at, scales, stepped)
      return y === undefined ? [] : [{ of, name: one.name, y: scales.y.text(y) }]
    })
    return values.length === 0 ? [] : [{ from, to, x: scales.x.text(at), values }]
  })
}
