/** Axes of plots: positions of values, and ticks that keep their distance. Pure. */
import { DAY, HOUR, MINUTE, SECOND, type Duration } from '../../system/clock.ts'
import { span } from '../text.ts'
import type { Axis } from './plot.ts'

export interface Tick {
  /** Position as a share of the axis, from 0 to 1. */
  readonly at: number
  readonly text: string
  /** Widths of the plot at which the tick is shown. */
  readonly shown: 'always' | 'wide' | 'narrow'
}

export interface AxisScale {
  /** Position of a value as a share of the axis, from 0 to 1; values outside are at its ends. */
  readonly at: (value: number) => number
  readonly text: (value: number) => string
  readonly ticks: readonly Tick[]
}

/** Lengths of the axis in a wide and in a narrow plot, and the least distance of two ticks, in pixels. */
export interface Room {
  readonly wide: number
  readonly narrow: number
  readonly gap: number
}

/** Steps between ticks of durations on a linear axis. */
export const DURATION_STEPS: readonly Duration[] = [
  ...[1, 2, 5, 10, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 30].map((n) => n * MINUTE),
  ...[1, 2, 4, 8].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 28].map((n) => n * DAY),
]
/** Ticks of durations on a logarithmic axis, a factor of 3 to 6 apart. */
const ROUND_DURATIONS: readonly Duration[] = [
  ...[1, 5, 15].map((n) => n * SECOND),
  ...[1, 5, 15].map((n) => n * MINUTE),
  ...[1, 4, 12].map((n) => n * HOUR),
  ...[2, 7, 28].map((n) => n * DAY),
]

interface Range {
  readonly from: number
  readonly to: number
}

const short = (value: number): string => String(Number(value.toPrecision(3)))

/** `0`, `0.5s`, `12m`, `1d 4h` */
const durationText = (value: Duration): string => (value === 0 ? '0' : value < 10 * SECOND ? `${short(value / SECOND)}s` : span(value))

/** The least of 1, 2 and 5 times a power of ten that is at least `value`. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 5, 10].find((n) => n * power >= value * (1 - 1e-9)) ?? 10) * power
}

/** Range of a linear axis. It begins at 0 unless the values are far from it. */
function linearRange(values: readonly number[]): Range {
  const [least, most] = [Math.min(...values), Math.max(...values)]
  const from = least > 0 && least <= 0.8 * most ? 0 : least
  return { from, to: most > from ? most : from + 1 }
}

function stepOf({ from, to }: Range, pixels: number, { gap }: Room, isDuration: boolean): number {
  const least = ((to - from) * gap) / pixels
  return (isDuration ? DURATION_STEPS.find((step) => step >= least) : undefined) ?? roundUp(least)
}

function linearTicks({ from, to }: Range, step: number): readonly number[] {
  const first = Math.ceil(from / step - 1e-9)
  const count = Math.floor(to / step + 1e-9) - first + 1
  return Array.from({ length: count }, (_, i) => Number(((first + i) * step).toPrecision(12)))
}

/**
 * Values at which a logarithmic axis of this length has labels: 1, 2 and 5 of each decade where `gap` pixels are between them, else 1
 * of each decade, or of every n-th. Both ends when the range has fewer than two of these values.
 */
export function logTicks({ from, to }: Range, pixels: number, gap: number): readonly number[] {
  const perDecade = pixels / Math.max(Math.log10(to / from), 0.001)
  const steps = perDecade * Math.log10(2) >= gap ? [1, 2, 5] : [1]
  const stride = Math.max(1, Math.ceil(gap / perDecade))
  const ticks: number[] = []
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power++) {
    if (power % stride !== 0) continue
    for (const step of steps) ticks.push(Number((step * 10 ** power).toPrecision(3)))
  }
  const inside = ticks.filter((tick) => tick >= from && tick <= to)
  return inside.length < 2 ? [from, to] : inside
}

/** Durations on a logarithmic axis of this length, as many as keep the distance. */
function durationTicks({ from, to }: Range, pixels: number, gap: number): readonly number[] {
  const apart = (a: number, b: number): number => (Math.log(b / a) / Math.log(to / from)) * pixels
  const shown: number[] = []
  for (const tick of ROUND_DURATIONS) {
    const last = shown.at(-1)
    if (tick >= from && tick <= to && (last === undefined || apart(last, tick) >= gap)) shown.push(tick)
  }
  return shown
}

function withWidths(wide: readonly number[], narrow: readonly number[]): readonly Pick<Tick & { value: number }, 'value' | 'shown'>[] {
  const inBoth = new Set(wide.filter((value) => narrow.includes(value)))
  return [
    ...wide.map((value) => ({ value, shown: inBoth.has(value) ? ('always' as const) : ('wide' as const) })),
    ...narrow.filter((value) => !inBoth.has(value)).map((value) => ({ value, shown: 'narrow' as const })),
  ]
}

/** Scale of an axis of numbers or durations that shows these values. */
export function axisScale({ scale, values: kind }: Axis, values: readonly number[], room: Room): AxisScale {
  const isDuration = kind === 'durations'
  const text = isDuration ? durationText : short
  const drawn = (share: (value: number) => number, wide: readonly number[], narrow: readonly number[]): AxisScale => {
    const at = (value: number): number => Math.min(1, Math.max(0, share(value)))
    return { at, text, ticks: withWidths(wide, narrow).map(({ value, shown }) => ({ at: at(value), text: text(value), shown })) }
  }
  if (scale === 'linear') {
    const exact = linearRange(values)
    const step = stepOf(exact, room.wide, room, isDuration)
    const range = { from: Math.floor(exact.from / step) * step, to: Math.ceil(exact.to / step - 1e-9) * step }
    const narrow = linearTicks(range, stepOf(range, room.narrow, room, isDuration))
    return drawn((value) => (value - range.from) / (range.to - range.from), linearTicks(range, step), narrow)
  }
  const positive = values.filter((value) => value > 0)
  const from = positive.length === 0 ? 1 : Math.min(...positive)
  const range = { from, to: Math.max(from * 1.001, ...positive) }
  const ticks = isDuration ? durationTicks : logTicks
  const share = (value: number): number => (value <= 0 ? 0 : Math.log(value / range.from) / Math.log(range.to / range.from))
  return drawn(share, ticks(range, room.wide, room.gap), ticks(range, room.narrow, room.gap))
}

/** Scale of the rows with these names, from the top: the rows are at the middle of equal parts. */
export const rowScale = (names: readonly string[]): AxisScale => ({
  at: (row) => 1 - (row + 0.5) / names.length,
  text: (row) => names[row] ?? '',
  ticks: names.map((text, row) => ({ at: 1 - (row + 0.5) / names.length, text, shown: 'always' })),
})
