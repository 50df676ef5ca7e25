/** Compares the instants of an expression with those of croner, and with the two rules on days with a change of time. */
import { expect } from 'vitest'
import { RunTimes } from '../../src/calendar/run-times.ts'
import { CronExpression } from '../../src/system/calendar/cron-expression.ts'
import { cronerRuns, dateIn, isChangeDay, monthsOf, runsByRules, ZONES, type Zone } from '../support/cron-oracle.ts'

export function runsOf(
  expression: string,
  zone: string,
  { from, until }: { readonly from: number; readonly until: number },
): readonly number[] {
  const times = new RunTimes(new CronExpression(expression, zone))
  const found: number[] = []
  for (let at = times.next(from); at !== null && at <= until; at = times.next(at)) found.push(at)
  return found
}

/** Returns the number of compared instants. */
export function compareMonth(expression: string, zone: Zone, month: { readonly from: number; readonly until: number }): number {
  const found = runsOf(expression, zone, month)
  const plain = (at: number): boolean => !isChangeDay(zone, at)
  const what = `${expression} in ${zone}`
  expect(found.filter(plain), what).toEqual(cronerRuns(expression, zone, month.from, month.until).filter(plain))
  for (const day of ZONES[zone]) {
    const at = Date.parse(day)
    if (at < month.from || at > month.until) continue
    expect(
      found.filter((one) => dateIn(zone, one) === day),
      `${what} on ${day}`,
    ).toEqual(runsByRules(expression, zone, day).filter((one) => dateIn(zone, one) === day))
  }
  return found.length
}

export const compareZone = (expression: string, zone: Zone): number =>
  monthsOf(zone).reduce((sum, month) => sum + compareMonth(expression, zone, month), 0)
