/** Replaces the times in a text by those of a wall clock that was set: seconds since 1970, ISO 8601, local time in UTC, and ctime(3). */
import { civilTime, MONTHS } from '../../src/mail/mail-date.ts'

const SECONDS = /\b1[67]\d{8}(?:\.\d+)?\b/g
const ISO = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g
const LOCAL = /\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b/g
const CTIME = /\b[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: \d{4})?\b/g

const two = (value: number): string => String(value).padStart(2, '0')

function ctimeOf(at: number, withYear: boolean): string {
  const { year, weekday, month, day, hour, minute, second } = civilTime(at)
  return `${weekday} ${MONTHS[month - 1]} ${String(day).padStart(2)} ${two(hour)}:${two(minute)}:${two(second)}${withYear ? ` ${year}` : ''}`
}

/** `year` is that of the times in the form of ctime(3) that have none. */
export const shiftedTimes = (text: string, step: number, year: number): string =>
  text
    .replaceAll(ISO, (time) => new Date(Date.parse(time) + step).toISOString())
    .replaceAll(LOCAL, (time) => new Date(Date.parse(`${time.replace(' ', 'T')}Z`) + step).toISOString().slice(0, 19).replace('T', ' '))
    .replaceAll(CTIME, (time) => {
      const withYear = time.length > 19
      return ctimeOf(Date.parse(`${time}${withYear ? '' : ` ${year}`} UTC`) + step, withYear)
    })
    .replaceAll(SECONDS, (time) => String(Math.round(Number(time) * 1000 + step) / 1000))
