/** Plots for a terminal: attempts as marks on a logarithmic time axis, outages as shaded rows, curves as rows of block characters. */
import { DURATION_STEPS } from '../presentation/plots/plot-axis.ts'
import { DAY, type Duration, HOUR, MINUTE } from '../system/clock.ts'
import { formatDuration } from '../system/duration.ts'

const TICKS: readonly (readonly [string, Duration])[] = [
  ['0', 0],
  ['5m', 5 * MINUTE],
  ['30m', 30 * MINUTE],
  ['2h', 2 * HOUR],
  ['8h', 8 * HOUR],
  ['1d', DAY],
  ['3d', 3 * DAY],
  ['7d', 7 * DAY],
  ['21d', 21 * DAY],
]

/** Column of an age on a logarithmic axis, on which both the first minutes and the last days are visible. */
function column(age: Duration, longest: Duration, width: number): number {
  const scaled = (time: Duration): number => Math.log1p(time / (2 * MINUTE))
  return longest <= 0 ? 0 : Math.round((scaled(age) / scaled(longest)) * (width - 1))
}

/** Axis above rows of attempts. */
export function timeAxis(longest: Duration, width: number): string {
  let axis = ''
  for (const [label, age] of TICKS) {
    const at = column(age, longest, width)
    if (age <= longest && at >= axis.length + (axis === '' ? 0 : 1) && at + label.length <= width) axis = axis.padEnd(at) + label
  }
  return axis
}

/** Linear axis for curves, with as many round times as fit. */
export function evenAxis(longest: Duration, width: number): string {
  const step = DURATION_STEPS.find((candidate) => (candidate / Math.max(1, longest)) * width >= 8) ?? longest
  let axis = ''
  for (let at = 0; at <= longest; at += Math.max(1, step)) {
    const labelled = axis.padEnd(Math.round((at / Math.max(1, longest)) * width)) + roundTime(at)
    if (labelled.length > width) break
    axis = labelled
  }
  return axis
}

const roundTime = (time: Duration): string => (time === 0 ? '0' : formatDuration(time))

/** A row with one mark per attempt. `│` marks the last attempt, after which the mail is returned. */
export function attemptRow(attempts: readonly Duration[], longest: Duration, width: number): string {
  const row = Array.from({ length: width }, () => ' ')
  for (const at of attempts) row[column(at, longest, width)] = '•'
  const last = attempts.at(-1)
  if (last !== undefined && attempts.length > 1) row[column(last, longest, width)] = '│'
  return row.join('').trimEnd()
}

/** A span of time as a shaded row. */
export function shadedRow(from: Duration, until: Duration, longest: Duration, width: number): string {
  const at = (time: Duration): number => Math.min(width, Math.max(0, Math.round((time / Math.max(1, longest)) * width)))
  return ' '.repeat(at(from)) + '░'.repeat(Math.max(1, at(until) - at(from)))
}

const BLOCKS = ' ▁▂▃▄▅▆▇█'

/** A curve as a row of block characters, in eighths. Each column shows the mean of its points relative to `bounds.y`. */
export function blockRow(
  points: readonly { readonly x: number; readonly y: number }[],
  bounds: { x: number; y: number },
  width: number,
): string {
  const sums = new Float64Array(width)
  const counts = new Uint32Array(width)
  for (const { x, y } of points) {
    const at = Math.min(width - 1, Math.max(0, Math.floor((x / Math.max(bounds.x, Number.MIN_VALUE)) * width)))
    sums[at] = sums[at]! + y
    counts[at] = counts[at]! + 1
  }
  let row = ''
  let level = 0
  for (let i = 0; i < width; i++) {
    if (counts[i]! > 0) level = sums[i]! / counts[i]!
    row += BLOCKS[Math.min(8, Math.ceil((level / Math.max(bounds.y, Number.MIN_VALUE)) * 8))] ?? '█'
    // The row ends at the last point of its curve.
    if (points.at(-1) !== undefined && (points.at(-1)?.x ?? 0) <= ((i + 1) / width) * bounds.x) break
  }
  return row
}
