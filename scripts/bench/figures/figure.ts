/**
 * Figures with targets: what was measured, the limit, and whether the limit holds.
 */
import { spreadOf, type Spread } from '../statistics.ts'

/** A limit on the median, or on each value with `each`. */
export interface Target {
  readonly least?: number
  readonly most?: number
  readonly each?: true
}

export interface Figure {
  readonly name: string
  /** For example `ms`; empty for a ratio. */
  readonly unit: string
  /** Null for a figure that is shown for comparison. */
  readonly target: Target | null
  /** One value for each round. */
  readonly values: readonly number[]
}

/** Whether a figure is within its target; null without a target or without values. */
export function isReached({ target, values }: Figure): boolean | null {
  const spread = spreadOf(values)
  if (target === null || spread === null) return null
  const { least = -Infinity, most = Infinity, each } = target
  return each ? spread.min >= least && spread.max <= most : spread.median >= least && spread.median <= most
}

/** The percentile of values, from 0 to 1, by the nearest rank; 0 without values. */
export function percentile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? 0
}

/** Each value divided by that of the unit in the same round. Rounds that the unit lacks are left out. */
export const ratios = (values: readonly number[], unit: readonly number[]): readonly number[] =>
  values.flatMap((value, round) => (unit[round] === undefined ? [] : [value / unit[round]]))

const HEAD = ['figure', 'median (smallest–largest)', 'target', 'reached'] as const

/** The figures with their targets, as a Markdown table. */
export const formatFigures = (figures: readonly Figure[]): string => table(figures, HEAD.length)

/** The figures without targets, as a Markdown table. */
export const formatMeasured = (figures: readonly Figure[]): string => table(figures, 2)

function table(figures: readonly Figure[], columns: number): string {
  const cells = figures.map((figure) => [nameOf(figure), shown(spreadOf(figure.values)), targetText(figure), reachedText(figure)])
  const rows = [HEAD, ...cells].map((row) => row.slice(0, columns))
  const widths = HEAD.slice(0, columns).map((_, n) => Math.max(...rows.map((row) => row[n]?.length ?? 0)))
  const line = (row: readonly string[]): string => `| ${row.map((cell, n) => cell.padEnd(widths[n] ?? 0)).join(' | ')} |`
  const [head = HEAD, ...body] = rows
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...body.map(line)].join('\n')
}

const nameOf = ({ name, unit }: Figure): string => (unit === '' ? name : `${name}, ${unit}`)

function shown(spread: Spread | null): string {
  if (spread === null) return '-'
  const { median, min, max } = spread
  return min === max ? digits(median) : `${digits(median)} (${digits(min)}–${digits(max)})`
}

/** Three significant digits, and all digits of larger numbers. */
function digits(value: number): string {
  const size = Math.abs(value)
  const decimals = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2
  return value.toLocaleString('en-US', { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
}

function targetText({ target }: Figure): string {
  if (target === null) return ''
  const limits = [
    ...(target.least === undefined ? [] : [`≥ ${digits(target.least)}`]),
    ...(target.most === undefined ? [] : [`≤ ${digits(target.most)}`]),
  ]
  return `${limits.join(', ')}${target.each ? ' each' : ''}`
}

function reachedText(figure: Figure): string {
  const reached = isReached(figure)
  return reached === null ? '' : reached ? 'yes' : 'NO'
}
