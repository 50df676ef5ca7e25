/**
 * Instants of cron expressions by other means than those of deferd: croner in UTC has the dates and times, and a table of the minutes of a
 * zone has their instants by the two rules for changes of time.
 */
import { Cron } from 'croner'
import fc from 'fast-check'

const MINUTE = 60_000
const DAY = 1_440 * MINUTE

/** Each zone with the days on which it changes its time in 2027; a zone without a change has none. */
export const ZONES = {
  'Europe/Berlin': ['2027-03-28', '2027-10-31'],
  'America/New_York': ['2027-03-14', '2027-11-07'],
  'Australia/Lord_Howe': ['2027-04-04', '2027-10-03'],
  'America/Santiago': ['2027-04-03', '2027-09-05'],
  'Asia/Kathmandu': [],
} as const satisfies Record<string, readonly string[]>

export type Zone = keyof typeof ZONES

/** A month around each change of time, and a plain one. */
export const monthsOf = (zone: Zone): readonly { readonly from: number; readonly until: number }[] =>
  ['2027-06-20', ...ZONES[zone]].map((day) => ({ from: Date.parse(day) - 15 * DAY, until: Date.parse(day) + 15 * DAY }))

const figures = (least: number, most: number, count: number): fc.Arbitrary<string> =>
  fc.uniqueArray(fc.integer({ min: least, max: most }), { minLength: 1, maxLength: count }).map((values) => values.join(','))
const steps = (most: number): fc.Arbitrary<string> => fc.integer({ min: Math.ceil(most / 3), max: most }).map((step) => `*/${step}`)
const range = (least: number, most: number): fc.Arbitrary<string> =>
  fc
    .tuple(fc.integer({ min: least, max: most }), fc.integer({ min: least, max: most }))
    .map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`)

const DAYS_OF_MONTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** False for days that none of the months has: node-cron refuses them, which test/config/schedule-tables.test.ts shows. */
function hasDay({ day, month }: { readonly day: string; readonly month: string }): boolean {
  const first = Math.min(...day.split(/[,-]/u).map(Number))
  const longest = Math.max(...month.split(/[,-]/u).map((one) => DAYS_OF_MONTHS[Number(one) - 1] ?? 31))
  return !(first > longest)
}

/** Expressions that restrict at most one of the two day fields: croner matches either of both. */
export const anyExpression: fc.Arbitrary<string> = fc
  .record({
    second: fc.constantFrom('', '', '', '0 ', '30 ', '15,45 '),
    minute: fc.oneof(figures(0, 59, 3), steps(59)),
    hour: fc.oneof(figures(0, 23, 4), range(0, 23), fc.constantFrom('*', '0-4', '1,2,3', '23,0')),
    day: fc.oneof(figures(1, 31, 5), range(1, 31), fc.constantFrom('*', '*', 'L', '1,15', '28-31')),
    month: fc.oneof(figures(1, 12, 8), fc.constantFrom('*', '*', '*', 'mar,apr', '9-11')),
    weekday: fc.oneof(figures(0, 6, 3), fc.constantFrom('1-5', '0', 'sun', 'mon,fri', '5#1')),
    byWeekday: fc.boolean(),
  })
  .filter((fields) => fields.byWeekday || hasDay(fields))
  .map(
    ({ second, minute, hour, day, month, weekday, byWeekday }) =>
      `${second}${minute} ${hour} ${byWeekday ? '*' : day} ${month} ${byWeekday ? weekday : '*'}`,
  )

/** All instants from `from` to `until` that croner finds. */
export function cronerRuns(expression: string, zone: string, from: number, until: number): readonly number[] {
  const cron = new Cron(expression, { timezone: zone })
  const found: number[] = []
  for (let at = cron.nextRun(new Date(from)); at !== null && at.getTime() <= until; at = cron.nextRun(at)) found.push(at.getTime())
  return found
}

/** The first instant of each minute that the zone has in a time, by the minute as UTC would have it. */
function minutesOf(zone: string, from: number, until: number): ReadonlyMap<number, number> {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' })
  const first = new Map<number, number>()
  for (let at = from; at <= until; at += MINUTE) {
    const written = Date.parse(`${format.format(at).replace(' ', 'T')}Z`)
    if (!first.has(written)) first.set(written, at)
  }
  return first
}

/** The runs of a day with a change of time, by the two rules. */
export function runsByRules(expression: string, zone: string, day: string): readonly number[] {
  const begin = Date.parse(day)
  const minutes = minutesOf(zone, begin - DAY, begin + 2 * DAY)
  const written = cronerRuns(expression, 'UTC', begin - 1, begin + DAY - 1)
  const instants = written.map((time) => {
    const minute = Math.floor(time / MINUTE) * MINUTE
    const exact = minutes.get(minute)
    if (exact !== undefined) return exact + (time - minute)
    // The gap: the first instant after it is that of the next minute that the zone has.
    for (let later = minute; ; later += MINUTE) {
      const at = minutes.get(later)
      if (at !== undefined) return at
    }
  })
  return [...new Set(instants)].toSorted((a, b) => a - b)
}

/** Days of the zone, as instants of UTC with its date, on which croner and the two rules differ. */
export const isChangeDay = (zone: Zone, at: number): boolean => ZONES[zone].some((day) => dateIn(zone, at) === day)

export const dateIn = (zone: string, at: number): string =>
  new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short' }).format(at)
