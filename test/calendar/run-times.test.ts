import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RunTimes } from '../../src/calendar/run-times.ts'
import { CronExpression } from '../../src/system/calendar/cron-expression.ts'
import { anyExpression, ZONES, type Zone } from '../support/cron-oracle.ts'
import { compareZone, runsOf } from './compared-runs.ts'

const day = (date: string) => ({ from: Date.parse(date) - 1, until: Date.parse(date) + 20 * 3_600_000 })
const shown = (runs: readonly number[]) => runs.map((at) => new Date(at).toISOString().slice(5, 16))

describe('at a change of time', () => {
  test('a time that is left out is the first instant after the gap, once', () => {
    expect(shown(runsOf('30 2 * * *', 'Europe/Berlin', day('2027-03-28')))).toEqual(['03-28T01:00'])
    expect(shown(runsOf('*/20 1-3 * * *', 'Europe/Berlin', day('2027-03-28')))).toEqual([
      '03-28T00:00',
      '03-28T00:20',
      '03-28T00:40',
      '03-28T01:00',
      '03-28T01:20',
      '03-28T01:40',
    ])
  })

  test('a time that occurs twice is the first of both', () => {
    expect(shown(runsOf('30 2 * * *', 'Europe/Berlin', day('2027-10-31')))).toEqual(['10-31T00:30'])
    expect(
      shown(runsOf('0 * * * *', 'Europe/Berlin', { from: Date.parse('2027-10-30T23:30Z'), until: Date.parse('2027-10-31T03:00Z') })),
    ).toEqual(['10-31T00:00', '10-31T02:00', '10-31T03:00'])
  })

  test('a change of half an hour, and one at midnight, have the same rules', () => {
    expect(shown(runsOf('15 2 * * *', 'Australia/Lord_Howe', day('2027-10-02')))).toEqual(['10-02T15:30'])
    expect(shown(runsOf('0 0 * * *', 'America/Santiago', day('2027-09-05')))).toEqual(['09-05T04:00'])
  })

  test('a day that a zone left out has one run', () => {
    expect(
      shown(runsOf('0 * * * *', 'Pacific/Apia', { from: Date.parse('2011-12-30T09:30Z'), until: Date.parse('2011-12-30T11:00Z') })),
    ).toEqual(['12-30T10:00', '12-30T11:00'])
  })
})

test.each([
  ['0 12 13 * 5', '2026-02-13T12:00', 'both day fields restrict: Friday the thirteenth'],
  ['0 0 L * *', '2026-01-31T00:00', 'the last day of the month'],
  ['0 0 L-2 2 *', '2026-02-26T00:00', 'two days before the last one'],
  ['0 0 1W 8 *', '2026-08-03T00:00', 'the weekday nearest to the first'],
  ['0 0 * * 5L', '2026-01-30T00:00', 'the last Friday'],
  ['0 0 29 2 1', '2044-02-29T00:00', 'a leap day on a Monday'],
  ['59 59 23 31 12 *', '2026-12-31T23:59', 'a field of seconds'],
  ['@weekly', '2026-01-04T00:00', 'a name'],
])('%s is next at %s: %s', (expression, next) => {
  const found = new RunTimes(new CronExpression(expression, 'UTC')).next(Date.parse('2026-01-01T00:00:00Z'))
  expect(new Date(found ?? 0).toISOString().slice(0, 16)).toBe(next)
})

test('an expression that matches on no day has no next run, and is searched in short steps', () => {
  const search = new RunTimes(new CronExpression('0 2 1-7 * 1#4', 'Europe/Berlin')).search(Date.parse('2026-01-01'))
  let longest = 0
  for (let step = search.next(); step.done !== true;) {
    const began = performance.now()
    step = search.next()
    longest = Math.max(longest, performance.now() - began)
    if (step.done === true) expect(step.value).toBeNull()
  }
  // Twice the figure of 20 ms, ten times for a loaded machine.
  expect(longest).toBeLessThan(400)
})

test('random expressions have the instants of croner, and those of the rules on days with a change', () => {
  fc.assert(
    fc.property(anyExpression, fc.constantFrom(...(Object.keys(ZONES) as Zone[])), (expression, zone) => {
      compareZone(expression, zone)
    }),
    { numRuns: 2 },
  )
})
