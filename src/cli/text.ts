/**
 * How things are written for people and programs: times, spans, sizes, and JSON. Text that came from the network
 * passes through `harmless` before it reaches a terminal, and JSON escapes what JSON.stringify would let through.
 */
import { DAY, HOUR, MINUTE, SECOND, type Clock, type Duration, type Instant } from '../mail/clock.ts'
import { civilTime, MONTHS } from '../mail/mail-date.ts'

export { isoInstant as isoTime } from '../mail/mail-date.ts'
export { harmless } from '../mail/reply.ts'

const two = (value: number): string => String(value).padStart(2, '0')

/** `2026-11-20 10:00:00`, in local time. */
export function localTime(at: Instant, clock: Clock): string {
  const { year, month, day, hour, minute, second } = civilTime(at, clock.zone(at).offset)
  return `${year}-${two(month)}-${two(day)} ${two(hour)}:${two(minute)}:${two(second)}`
}

/** ctime(3) without the year: `Fri Nov 20 10:00:00`, the day padded with a blank. */
export function ctime(at: Instant, clock: Clock): string {
  const { month, day, hour, minute, second, weekday } = civilTime(at, clock.zone(at).offset)
  return `${weekday} ${MONTHS[month - 1] ?? ''} ${String(day).padStart(2)} ${two(hour)}:${two(minute)}:${two(second)}`
}

const UNITS: readonly (readonly [string, Duration])[] = [
  ['d', DAY],
  ['h', HOUR],
  ['m', MINUTE],
  ['s', SECOND],
]

/** A span in its two largest units, or in so many: `3h 12m`, `2d`, `45s`, `0s`. */
export function span(duration: Duration, units = 2): string {
  let rest = Math.max(0, duration) + SECOND / 2
  const parts: string[] = []
  for (const [unit, size] of UNITS) {
    const figure = Math.floor(rest / size)
    rest -= figure * size
    if (figure > 0) parts.push(`${figure}${unit}`)
    else if (parts.length > 0) break
    if (parts.length === units) break
  }
  return parts.length === 0 ? '0s' : parts.join(' ')
}

/** `in 12m`, `3h 5m ago`, `now`. */
export function relative(at: Instant, now: Instant): string {
  const words = span(Math.abs(at - now))
  if (words === '0s') return 'now'
  return at > now ? `in ${words}` : `${words} ago`
}

/** `512 B`, `2.1 kB`, `10 MB`. */
export function byteSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  let value = bytes
  let unit = ''
  for (const next of ['kB', 'MB', 'GB', 'TB']) {
    if (value < 999.5) break
    value /= 1000
    unit = next
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${unit}`
}

/** `1,234,567`; not by Intl, which takes 10 ms to load. */
export const grouped = (count: number): string => String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')

export const plural = (count: number, noun: string): string => `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`

/** Epoch seconds with a fraction, as our own JSON members have them. */
export const epochSeconds = (at: Instant): number => at / 1000

// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const CONTROLS = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

const LF = 0x0a
const DEL = 0x7f
/** Bytes of a character in UTF-8. */
const LONGEST_CHARACTER = 4

const escaped = (letter: string): string => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`

/** One line of JSON in which no control character stands for itself but the line end. */
export const jsonLine = (value: unknown): string => `${JSON.stringify(value).replace(CONTROLS, escaped)}\n`

/** Many such lines, encoded, in memory of their own. */
export function jsonLines(values: readonly unknown[]): Uint8Array {
  const lines = values.map((value) => JSON.stringify(value))
  return plainLines(lines) ?? new TextEncoder().encode(lines.map((line) => `${line.replace(CONTROLS, escaped)}\n`).join(''))
}

/** Lines of ASCII without DEL, as most are, each encoded where it belongs; undefined when there is more in them. */
function plainLines(lines: readonly string[]): Uint8Array | undefined {
  // With room for one character more, a line that is not ASCII never takes as many bytes as it has letters.
  const bytes = Buffer.allocUnsafeSlow(lines.reduce((sum, line) => sum + line.length + 1, LONGEST_CHARACTER))
  let end = 0
  for (const line of lines) {
    if (bytes.write(line, end) !== line.length) return undefined
    end += line.length
    bytes[end++] = LF
  }
  const plain = bytes.subarray(0, end)
  return plain.includes(DEL) ? undefined : plain
}

/** Cuts a text to a width, with an ellipsis when something is lost. */
export const clipped = (text: string, width: number): string => (text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`)
