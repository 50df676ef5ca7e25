/**
 * Formats times, spans, sizes and JSON. `maskControls` masks text from the network before a terminal prints it. JSON output
 * escapes the control characters that JSON.stringify does not escape.
 */
import type { Clock, Duration, QueueTime, WallTime } from '../system/clock.ts'
import { largestUnits } from '../system/duration.ts'
import { civilTime, MONTHS } from '../mail/mail-date.ts'
import { escapeControls } from '../mail/smtp-reply.ts'

export { isoInstant as isoTime } from '../mail/mail-date.ts'
export { maskControls } from '../mail/smtp-reply.ts'

const two = (value: number): string => String(value).padStart(2, '0')

/** Formats local time: `2026-11-20 10:00:00`. */
export function localTime(at: WallTime, clock: Pick<Clock, 'zone'>): string {
  const { year, month, day, hour, minute, second } = civilTime(at, clock.zone(at).offset)
  return `${year}-${two(month)}-${two(day)} ${two(hour)}:${two(minute)}:${two(second)}`
}

/** Names a zone by its offset in minutes east of UTC: `UTC`, `UTC+1`, `UTC−3:30`. */
export function zoneText(offset: number): string {
  if (offset === 0) return 'UTC'
  const [hours, rest] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60]
  return `UTC${offset < 0 ? '−' : '+'}${hours}${rest === 0 ? '' : `:${two(rest)}`}`
}

/** Formats like ctime(3) without the year: `Fri Nov 20 10:00:00`. A one-digit day is padded with a space. */
export function ctime(at: WallTime, clock: Pick<Clock, 'zone'>): string {
  const { month, day, hour, minute, second, weekday } = civilTime(at, clock.zone(at).offset)
  return `${weekday} ${MONTHS[month - 1] ?? ''} ${String(day).padStart(2)} ${two(hour)}:${two(minute)}:${two(second)}`
}

/** Formats a duration in its two largest units, or in `units`: `3h 12m`, `2d`, `45s`, `0s`. */
export const span = (duration: Duration, units = 2): string =>
  largestUnits(duration, units)
    .map(({ figure, unit }) => `${figure}${unit.charAt(0)}`)
    .join(' ') || '0s'

/** Formats a distance in time: `in 12m`, `3h 5m ago`, `now`. */
export function relative<Time extends QueueTime | WallTime>(at: Time, now: Time): string {
  const text = span(Math.abs(at - now))
  if (text === '0s') return 'now'
  return at > now ? `in ${text}` : `${text} ago`
}

/** Formats a measured time: `12 ms`, `1.4 s`. */
export const tookText = (inSeconds: number): string =>
  inSeconds < 0.9995 ? `${Math.round(inSeconds * 1_000)} ms` : `${inSeconds.toFixed(1)} s`

/** Formats a size: `512 B`, `2.1 kB`, `10 MB`. */
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

/** Formats a count: `1,234,567`. Intl is not used, because it takes 10 ms to load. */
export const grouped = (count: number): string => String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',')

/** Formats a number per second: `0`, `<0.1`, `2.1`, `38`, `1,204`. */
export const rate = (perSecond: number): string =>
  perSecond === 0 ? '0' : perSecond < 0.05 ? '<0.1' : perSecond < 9.95 ? perSecond.toFixed(1) : grouped(Math.round(perSecond))

/** A text with the capital letter of a sentence. The name of a parameter stays as it is. */
export const asSentence = (text: string): string => (/^\w*_/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1))

/** Ends a sentence that may end with a reply, which may have a full stop. */
export const ended = (text: string): string => (/[.!?…]$/.test(text) ? text : `${text}.`)

export const plural = (count: number, noun: string, several = `${noun}s`): string => `${grouped(count)} ${count === 1 ? noun : several}`

/** `4 failed tries, the next in 5m`, of the next event of a subscription. */
export const triesText = <Time extends QueueTime | WallTime>(tries: number, next: Time | null, now: Time): string =>
  `${tries} failed ${tries === 1 ? 'try' : 'tries'}${next === null ? '' : `, the next ${relative(next, now)}`}`

/** The number of messages in transfer after an operation that ends attempts: `3 are in transfer: delivered and bounced stand`. */
export const transferText = (count: number): string =>
  `${grouped(count)} ${count === 1 ? 'is' : 'are'} in transfer: delivered and bounced stand`

/** The reverse of `epochSeconds`, for times of deferd's JSON. */
export const instantOf = (seconds: number): WallTime => Math.round(seconds * 1000)

/** Converts to seconds since 1970 with a fraction, the unit of times in deferd's JSON. */
export const epochSeconds = (at: WallTime): number => at / 1000

const DEL = 0x7f
/** Maximum number of bytes of a UTF-8 character. */
const LONGEST_CHARACTER = 4

/** One line of JSON in which the line end is the only unescaped control character. */
export const jsonLine = (value: unknown): string => `${escapeControls(JSON.stringify(value))}\n`

/** Encodes several JSON lines into one buffer. */
export function jsonLines(values: readonly unknown[]): Uint8Array {
  const lines = values.map((value) => `${JSON.stringify(value)}\n`)
  const plain = asciiBytes(lines)
  return plain === undefined || plain.includes(DEL) ? new TextEncoder().encode(values.map(jsonLine).join('')) : plain
}

/** Encodes ASCII texts into one buffer of its own. Undefined when a text has other characters. */
export function asciiBytes(texts: readonly string[]): Uint8Array | undefined {
  // The extra bytes let `write` return a number larger than the text's length when a text is not ASCII.
  const bytes = Buffer.allocUnsafeSlow(texts.reduce((sum, text) => sum + text.length, LONGEST_CHARACTER))
  let end = 0
  for (const text of texts) {
    if (bytes.write(text, end) !== text.length) return undefined
    end += text.length
  }
  return bytes.subarray(0, end)
}

/** Limits a text to a width. A shortened text ends with an ellipsis, which may be within a word. */
export const clipped = (text: string, width: number): string => (text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`)

/** Limits a sentence to a width. A shortened one ends with a whole word and an ellipsis, unless that would leave less than half of the width. */
export function clippedWords(text: string, width: number): string {
  if (text.length <= width) return text
  const end = text.lastIndexOf(' ', width - 2)
  return end < width / 2 ? clipped(text, width) : `${text.slice(0, end).replace(/[\s,;:([<]+$/, '')} …`
}
