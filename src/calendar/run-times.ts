/**
 * Instants of a cron expression in a time zone. Candidates come from the sets of its fields, and node-cron confirms each of them. Both
 * day fields restrict. A time that summer time leaves out is the first instant after the gap, and one that occurs twice is the first of
 * both. Pure.
 */
import { civilTime } from '../mail/mail-date.ts'
import { DAY, HOUR, MINUTE, SECOND, type WallTime } from '../system/clock.ts'
import type { CronExpression } from '../system/calendar/cron-expression.ts'
import { instantOf, offsetsAround, zoneTimeAt, type ZoneTime } from './zone-time.ts'

/** Dates come again after 40 years at the latest, such as 29 February on a given weekday around 2100. */
const SEARCHED_DAYS = 41 * 366

/** Steps of a search between two pauses: a step takes at most 50 µs. */
const STEPS = 100

/** A search for the next instant. It yields after each 100 steps, so that its caller can pause it. */
export type Search = Generator<undefined, WallTime | null>

type Day = readonly (number | string)[]

/** Days of the month that a token can mean: false only where node-cron cannot match. */
function mayBeDay(token: number | string, day: number): boolean {
  if (typeof token === 'number') return token === day
  const [, before] = /^L-(\d+)$/.exec(token) ?? []
  if (before !== undefined) return day >= 28 - Number(before) && day <= 31 - Number(before)
  if (token.startsWith('L')) return day >= 25
  const [, near] = /^(\d+)W$/.exec(token) ?? []
  return near === undefined || Math.abs(day - Number(near)) <= 2
}

/** Weekdays that a token can mean, 0 for Sunday. */
function mayBeWeekday(token: number | string, weekday: number): boolean {
  return typeof token === 'number' ? token === weekday : Number(token[0]) % 7 === weekday
}

/** 1970-01-01 was a Thursday. */
const weekdayOf = (time: ZoneTime): number => (Math.floor(time / DAY) + 4) % 7

const sorted = (values: readonly number[]): readonly number[] => [...new Set(values)].toSorted((a, b) => a - b)

export class RunTimes {
  readonly #expression: CronExpression
  readonly #hours: readonly number[]
  readonly #minutes: readonly number[]
  readonly #seconds: readonly number[]
  readonly #months: ReadonlySet<number>
  readonly #daysOfMonth: Day
  readonly #daysOfWeek: Day
  /** The last answer: the next instant after all instants from `from` to itself. */
  #last: { readonly from: WallTime; readonly next: WallTime | null } | null = null

  constructor(expression: CronExpression) {
    const { hour, minute, second, month, dayOfMonth, dayOfWeek } = expression.fields
    this.#expression = expression
    this.#hours = sorted(hour)
    this.#minutes = sorted(minute)
    this.#seconds = sorted(second)
    this.#months = new Set(month)
    this.#daysOfMonth = dayOfMonth
    this.#daysOfWeek = dayOfWeek
  }

  /** The first instant after `after`; null when the expression never matches. */
  next(after: WallTime): WallTime | null {
    const search = this.search(after)
    for (;;) {
      const { done, value } = search.next()
      if (done === true) return value
    }
  }

  /** The next instants after `after`. */
  following(after: WallTime, count: number): readonly WallTime[] {
    const next = count <= 0 ? null : this.next(after)
    return next === null ? [] : [next, ...this.following(next, count - 1)]
  }

  /** As `next`, in steps. */
  *search(after: WallTime): Search {
    const last = this.#last
    if (last !== null && after >= last.from && (last.next === null || after < last.next)) return last.next
    const next = yield* this.#search(after)
    this.#last = { from: after, next }
    return next
  }

  *#search(after: WallTime): Search {
    const { zone } = this.#expression
    const start = zoneTimeAt(zone, after)
    const first = Math.floor(start / DAY) * DAY
    let steps = 0
    for (let day = first; day < first + SEARCHED_DAYS * DAY; day += DAY) {
      if (++steps % STEPS === 0) yield
      if (!this.#mayRunOn(day)) continue
      const offsets = offsetsAround(zone, day, day + DAY)
      for (const time of this.#timesOf(day, start)) {
        if (++steps % STEPS === 0) yield
        const { at, exists } = instantOf(zone, time, offsets)
        if (at <= after) continue
        if (exists ? this.#expression.matches(at) : this.#expression.matchesWritten(time)) return at
        // The day is not one of the expression: its other times do not match either.
        if (!this.#expression.matchesWritten(time)) break
      }
    }
    return null
  }

  #mayRunOn(day: ZoneTime): boolean {
    const { month, day: dayOfMonth } = civilTime(day)
    return (
      this.#months.has(month) &&
      this.#daysOfMonth.some((token) => mayBeDay(token, dayOfMonth)) &&
      this.#daysOfWeek.some((token) => mayBeWeekday(token, weekdayOf(day)))
    )
  }

  /** The times of a day, in order, without those of minutes before `start`. */
  *#timesOf(day: ZoneTime, start: ZoneTime): Generator<ZoneTime> {
    for (const hour of this.#hours) {
      const inHour = day + hour * HOUR
      if (inHour + HOUR <= start) continue
      for (const minute of this.#minutes) {
        const inMinute = inHour + minute * MINUTE
        if (inMinute + MINUTE <= start) continue
        for (const second of this.#seconds) yield inMinute + second * SECOND
      }
    }
  }
}
