/**
 * Formats and parses dates of mail (RFC 5322 §3.3) and of ISO 8601. Pure: the offset from UTC is an argument, because Date
 * depends on the time zone of the process.
 */
import { DAY, HOUR, MINUTE, SECOND, type Clock, type QueueTime, type WallTime } from '../system/clock.ts'

const WEEKDAYS = ['Thu', 'Fri', 'Sat', 'Sun', 'Mon', 'Tue', 'Wed'] // 1970-01-01 was a Thursday
export const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

interface CivilTime {
  readonly year: number
  /** 1–12. */
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  /** `Mon`. */
  readonly weekday: string
}

const pad = (value: number, width = 2): string => String(value).padStart(width, '0')

/** Converts a day number since 1970 to a date. Years are counted from March, so that a leap day is the last day of its year. */
function dateOf(day: number): { year: number; month: number; day: number } {
  const shifted = day + 719_468 // days from 0000-03-01
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1,
  }
}

/** Civil time of an instant, `offset` minutes east of UTC. */
export function civilTime(at: WallTime, offset = 0): CivilTime {
  const local = at + offset * MINUTE
  const days = Math.floor(local / DAY)
  const inDay = local - days * DAY
  return {
    ...dateOf(days),
    hour: Math.floor(inDay / HOUR),
    minute: Math.floor((inDay % HOUR) / MINUTE),
    second: Math.floor((inDay % MINUTE) / SECOND),
    weekday: WEEKDAYS[((days % 7) + 7) % 7] ?? '',
  }
}

/** Formats a date of mail: `Fri, 20 Nov 2026 09:05:00 +0100 (CET)`. */
export function formatMailDate(at: WallTime, zone: { readonly offset: number; readonly name: string }): string {
  const time = civilTime(at, zone.offset)
  const offset = Math.abs(zone.offset)
  const digits = `${zone.offset < 0 ? '-' : '+'}${pad(Math.floor(offset / 60))}${pad(offset % 60)}`
  const date = `${time.weekday}, ${pad(time.day)} ${MONTHS[time.month - 1] ?? ''} ${pad(time.year, 4)}`
  return `${date} ${pad(time.hour)}:${pad(time.minute)}:${pad(time.second)} ${digits} (${zone.name})`
}

/** Formats an instant of the queue as a date of mail, by the wall clock and in its zone. */
export function mailDate(at: QueueTime, clock: Pick<Clock, 'wall' | 'zone'>): string {
  const wall = clock.wall.of(at)
  return formatMailDate(wall, clock.zone(wall))
}

/** Formats a time in UTC as the first part of a Message-Id: `20261120080500`. */
export function formatStamp(at: WallTime): string {
  const { year, month, day, hour, minute, second } = civilTime(at)
  return pad(year, 4) + [month, day, hour, minute, second].map((part) => pad(part)).join('')
}

/** Day number of a date, the inverse of `dateOf`. */
function dayOf(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year
  const era = Math.floor(marchYear / 400)
  const yearOfEra = marchYear - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  return era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719_468
}

/** Begin of a day in UTC; undefined for a date that does not exist. */
export function midnightOf({ year, month, day }: Pick<CivilTime, 'year' | 'month' | 'day'>): WallTime | undefined {
  const number = dayOf(year, month, day)
  const date = dateOf(number)
  return date.year === year && date.month === month && date.day === day ? number * DAY : undefined
}

/** Offsets from UTC in minutes by obsolete zone name (RFC 5322 §4.3). Other names mean UTC. */
const ZONES: Readonly<Record<string, number>> = { EDT: -240, EST: -300, CDT: -300, CST: -360, MDT: -360, MST: -420, PDT: -420, PST: -480 }

/** Parses a date of mail. Undefined for other text. */
export function parseMailDate(text: string): WallTime | undefined {
  const match =
    /^(?:[A-Za-z]{3},\s*)?(\d{1,2})\s+([A-Za-z]{3})\s+(\d{4})\s+(\d\d):(\d\d)(?::(\d\d))?(?:\s+([+-]\d{4}|[A-Za-z]{1,5}))?/.exec(
      text.trim(),
    )
  if (match === null) return undefined
  const [, day = '', monthName = '', year = '', hour = '', minute = '', second = '0', zone = ''] = match
  const month = MONTHS.findIndex((name) => name.toLowerCase() === monthName.toLowerCase()) + 1
  if (month === 0) return undefined
  const digits = /^([+-])(\d\d)(\d\d)$/.exec(zone)
  const offset =
    digits === null ? (ZONES[zone.toUpperCase()] ?? 0) : (digits[1] === '-' ? -1 : 1) * (Number(digits[2]) * 60 + Number(digits[3]))
  const inDay = Number(hour) * HOUR + (Number(minute) - offset) * MINUTE + Number(second) * SECOND
  return dayOf(Number(year), month, Number(day)) * DAY + inDay
}

/** `2026-11-20T08:05:00.250Z` (ISO 8601). */
export function isoInstant(at: WallTime): string {
  const { year, month, day, hour, minute, second } = civilTime(at)
  const millis = ((at % SECOND) + SECOND) % SECOND
  return `${pad(year, 4)}-${pad(month)}-${pad(day)}T${pad(hour)}:${pad(minute)}:${pad(second)}.${pad(millis, 3)}Z`
}
