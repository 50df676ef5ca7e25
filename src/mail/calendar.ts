/**
 * The calendar: what an instant is called in a zone. Pure arithmetic (the proleptic Gregorian calendar counted in
 * 400-year eras, as in Howard Hinnant's "chrono-compatible low-level date algorithms").
 */
import { DAY, HOUR, MINUTE, SECOND, type Instant } from './clock.ts'

export interface CalendarTime {
  readonly year: number
  /** From 1 to 12. */
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly millisecond: number
  /** From 0, Sunday. */
  readonly weekday: number
}

export const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const
export const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'] as const

/** Days from 0000-03-01, where eras begin, to 1970-01-01. */
const EPOCH = 719_468
const DAYS_PER_ERA = 146_097

/** The date and time of an instant, `offset` minutes east of UTC. */
export function calendar(at: Instant, offset = 0): CalendarTime {
  const local = at + offset * MINUTE
  const days = Math.floor(local / DAY)
  const inDay = local - days * DAY
  const era = Math.floor((days + EPOCH) / DAYS_PER_ERA)
  const dayOfEra = days + EPOCH - era * DAYS_PER_ERA
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1,
    hour: Math.floor(inDay / HOUR),
    minute: Math.floor((inDay % HOUR) / MINUTE),
    second: Math.floor((inDay % MINUTE) / SECOND),
    millisecond: inDay % SECOND,
    weekday: (((days + 4) % 7) + 7) % 7,
  }
}
