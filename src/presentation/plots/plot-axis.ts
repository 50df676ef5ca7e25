/** Axes of plots: positions of values, and ticks that keep their distance. Pure. */
import { civilTime, MONTHS } from '../../mail/mail-date.ts'
import { DAY, HOUR, MINUTE, SECOND, type Duration } from '../../system/clock.ts'
import { grouped, localTime, span, zoneText } from '../text.ts'
import type { Axis, Instants } from './plot.ts'

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
/** Steps between ticks of instants. */
const TIME_STEPS: readonly Duration[] = [
  ...[1, 2, 5, 10, 15, 20, 30, 90].map((n) => n * MINUTE),
  ...[1, 2, 3, 4, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 14, 28, 56, 112].map((n) => n * DAY),
].toSorted((a, b) => a - b)
/** Minimum distance of two ticks of instants, in pixels. */
const TIME_GAP = 60
/** Ticks of durations on a logarithmic axis, a factor of 3 to 10 apart. */
const ROUND_DURATIONS: readonly Duration[] = [
  1,
  10,
  100,
  ...[1, 5, 15].map((n) => n * SECOND),
  ...[1, 5, 15].map((n) => n * MINUTE),
  ...[1, 4, 12].map((n) => n * HOUR),
  ...[2, 7, 28].map((n) => n * DAY),
]

interface Range {
  readonly from: number
  readonly to: number
}

/** `0.25`, `15`, `12,000` */
const short = (value: number): string => (value < 1_000 ? String(Number(value.toPrecision(3))) : grouped(Math.round(value)))

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

function stepOf({ from, to }: Range, pixels: number, { gap }: Room, kind: Axis['values']): number {
  const least = Math.max(((to - from) * gap) / pixels, kind === 'counts' ? 1 : 0)
  return (kind === 'durations' ? DURATION_STEPS.find((step) => step >= least) : undefined) ?? roundUp(least)
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

/** Range of a logarithmic axis; one of durations ends at round durations, so that each value is between two labels. */
function logRange(values: readonly number[], isDuration: boolean): Range {
  const positive = values.filter((value) => value > 0)
  const from = positive.length === 0 ? 1 : Math.min(...positive)
  const to = Math.max(from * 1.001, ...positive)
  if (!isDuration) return { from, to }
  // The longest one ends an axis, and begins none: longer durations would have its label alone.
  const begin = ROUND_DURATIONS.slice(0, -1).findLast((one) => one <= from)
  return { from: begin ?? from, to: ROUND_DURATIONS.find((one) => one >= to) ?? to }
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

const isInstants = (values: Axis['values']): values is Instants => typeof values === 'object' && 'zone' in values

/** The names of the rows of an axis; null for an axis without rows. */
export const rowsOf = ({ values }: Axis): readonly string[] | null => (typeof values === 'object' && !isInstants(values) ? values : null)

/** The title of an axis with its scale, or with the zone of its instants at `at`. */
export function axisTitle({ title, scale, values }: Axis, at: number): string {
  if (isInstants(values)) return `${title} (${zoneText(values.zone(at).offset)})`
  return scale === 'logarithmic' ? `${title} (logarithmic)` : title
}

/** Scale of an axis of instants. It ends at its first and last instants; ticks are at round times of its zone, dates at midnight. */
function timeScale(clock: Instants, instants: readonly number[], room: Room): AxisScale {
  const [from, to] = [Math.min(...instants), Math.max(...instants)]
  const length = Math.max(1, to - from)
  const at = (value: number): number => Math.min(1, Math.max(0, (value - from) / length))
  const offset = clock.zone(to).offset * MINUTE
  const ticks = (pixels: number): readonly number[] => {
    const step = TIME_STEPS.find((one) => one >= (length * TIME_GAP) / pixels) ?? 28 * DAY
    return linearTicks({ from: from + offset, to: to + offset }, step).map((local) => local - offset)
  }
  const text = (value: number): string => localTime(value, clock).slice(length > DAY ? 5 : 11, 16)
  const label = (value: number): string => {
    const { day, month, hour, minute } = civilTime(value, clock.zone(value).offset)
    return hour === 0 && minute === 0 ? `${day} ${MONTHS[month - 1] ?? ''}` : localTime(value, clock).slice(11, 16)
  }
  return {
    at,
    text,
    ticks: withWidths(ticks(room.wide), ticks(room.narrow)).map(({ value, shown }) => ({ at: at(value), text: label(value), shown })),
  }
}

/** Scale of an axis of numbers, durations or instants that shows these values. */
export function axisScale({ scale, values: kind, includes = [] }: Axis, drawnValues: readonly number[], room: Room): AxisScale {
  const values = [...drawnValues, ...includes]
  if (isInstants(kind)) return timeScale(kind, values, room)
  const isDuration = kind === 'durations'
  const text = isDuration ? durationText : short
  const drawn = (share: (value: number) => number, wide: readonly number[], narrow: readonly number[]): AxisScale => {
    const at = (value: number): number => Math.min(1, Math.max(0, share(value)))
    return { at, text, ticks: withWidths(wide, narrow).map(({ value, shown }) => ({ at: at(value), text: text(value), shown })) }
  }
  if (scale === 'linear') {
    const exact = linearRange(values)
    const step = stepOf(exact, room.wide, room, kind)
    const range = { from: Math.floor(exact.from / step) * step, to: Math.ceil(exact.to / step - 1e-9) * step }
    const narrow = linearTicks(range, stepOf(range, room.narrow, room, kind))
    return drawn((value) => (value - range.from) / (range.to - range.from), linearTicks(range, step), narrow)
  }
  const ticks = isDuration ? durationTicks : logTicks
  const range = logRange(values, isDuration)
  const share = (value: number): number => (value <= 0 ? 0 : Math.log(value / range.from) / Math.log(range.to / range.from))
  return drawn(share, ticks(range, room.wide, room.gap), ticks(range, room.narrow, room.gap))
}

/** Scale of the rows with these names, from the top: the rows are at the middle of equal parts. */
export const rowScale = (names: readonly string[]): AxisScale => ({
  at: (row) => 1 - (row + 0.5) / names.length,
  text: (row) => names[row] ?? '',
  ticks: names.map((text, row) => ({ at: 1 - (row + 0.5) / names.length, text, shown: 'always' })),
})
