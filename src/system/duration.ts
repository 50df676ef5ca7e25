/** Parses durations (`300s`, `1.5h`, `1h30m`, or a number of seconds), and formats them exactly or cut to their largest units. */
import { DAY, type Duration, HOUR, MINUTE, SECOND } from './clock.ts'

const UNITS: Readonly<Record<string, Duration>> = {
  us: 0.001,
  µs: 0.001,
  ms: 1,
  s: SECOND,
  m: MINUTE,
  h: HOUR,
  d: DAY,
  w: 7 * DAY,
}

/** Parses a duration to milliseconds, with fractions down to 1 ns. Undefined for invalid text. */
export function parseExactDuration(text: string): Duration | undefined {
  const trimmed = text.trim()
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed) * SECOND
  if (!/^(\d+(\.\d+)?\s*(us|µs|ms|s|m|h|d|w)\s*)+$/.test(trimmed)) return undefined
  let total = 0
  for (const [, figure, unit] of trimmed.matchAll(/(\d+(?:\.\d+)?)\s*(us|µs|ms|s|m|h|d|w)/g))
    total += Number(figure) * (UNITS[unit ?? ''] ?? 0)
  return Math.round(total * 1e6) / 1e6
}

/** Parses a duration to whole milliseconds. Undefined for invalid text, and for more milliseconds than a number holds exactly. */
export function parseDuration(text: string): Duration | undefined {
  const duration = Math.round(parseExactDuration(text) ?? Number.NaN)
  return Number.isSafeInteger(duration) ? duration : undefined
}

/** Formats a duration in the largest unit that is exact: 300000 → `5m`, 4000000 → `4000s`, 90000 → `90s`. */
export function formatDuration(duration: Duration): string {
  for (const unit of ['d', 'h', 'm', 's', 'ms']) {
    const figure = duration / (UNITS[unit] ?? 1)
    if (figure >= 1 && Number.isInteger(figure)) return `${figure}${unit}`
  }
  return duration === 0 ? '0s' : `${Math.round(duration * 1e6) / 1000}us`
}

/** A duration in a record, in whole seconds from a second on: the time of the request is not that of the record. */
export const recordedDuration = (duration: Duration): string =>
  formatDuration(duration < SECOND ? Math.round(duration) : Math.round(duration / SECOND) * SECOND)

const LARGEST_FIRST = [
  ['day', DAY],
  ['hour', HOUR],
  ['minute', MINUTE],
  ['second', SECOND],
] as const

export interface Figure {
  readonly figure: number
  readonly unit: (typeof LARGEST_FIRST)[number][0]
}

/**
 * Splits a duration, rounded to seconds, into days, hours, minutes and seconds. Returns at most `count` units, from the largest
 * one above 0 to the last one before a 0. Empty below half a second.
 */
export function largestUnits(duration: Duration, count = 2): readonly Figure[] {
  const figures: Figure[] = []
  let rest = Math.max(0, Math.round(duration / SECOND) * SECOND)
  for (const [unit, length] of LARGEST_FIRST) {
    const figure = Math.floor(rest / length)
    rest -= figure * length
    if (figure > 0) figures.push({ figure, unit })
    else if (figures.length > 0) break
  }
  return figures.slice(0, count)
}
