/** Times of delay warnings: ages, and the deliver-by time of BY with the mode N. */
import { expect, test } from 'vitest'
import { isOverdue, nextWarning, warningTimes, warningsUsed, type WarningAges } from '../../src/bounce/warning-times.ts'
import type { ByMode } from '../../src/mail/message-times.ts'
import { HOUR } from '../../src/system/clock.ts'

const AT = 1_000_000
const AGES = (): readonly number[] => [4 * HOUR, 24 * HOUR]
const PLAIN = { arrivedAt: AT }
const by = (hours: number, byMode: ByMode = 'N') => ({ arrivedAt: AT, deliverBy: AT + hours * HOUR, byMode })
const all = (message: Parameters<typeof nextWarning>[1], ages: WarningAges = AGES) =>
  [0, 1, 2, 3].map((used) => nextWarning(ages, message, used))

test('the next time follows from the number of times used', () => {
  expect(all(PLAIN)).toEqual([AT + 4 * HOUR, AT + 24 * HOUR, null, null])
  expect(all(PLAIN, () => [])).toEqual([null, null, null, null])
})

test('the deliver-by time is one more time, in order, and once when an age is equal', () => {
  expect(all(by(1))).toEqual([AT + HOUR, AT + 4 * HOUR, AT + 24 * HOUR, null])
  expect(all(by(8, 'NT'))).toEqual([AT + 4 * HOUR, AT + 8 * HOUR, AT + 24 * HOUR, null])
  expect(all(by(4))).toEqual([AT + 4 * HOUR, AT + 24 * HOUR, null, null])
  expect(all(by(1), () => [])).toEqual([AT + HOUR, null, null, null])
})

test('ages count from the release, the deliver-by time does not', () => {
  expect(warningTimes(AGES, { ...by(6), notBefore: AT + 3 * HOUR })).toEqual([AT + 6 * HOUR, AT + 7 * HOUR, AT + 27 * HOUR])
})

test('the mode R has no warning, and a time that has passed on arrival was reported before', () => {
  expect(all(by(1, 'R'))).toEqual(all(PLAIN))
  expect(all(by(-1))).toEqual(all(PLAIN))
  expect([
    isOverdue(by(1, 'R'), AT + 9 * HOUR),
    isOverdue(by(-1), AT),
    isOverdue(by(1), AT + HOUR - 1),
    isOverdue(by(1), AT + HOUR),
  ]).toEqual([false, false, false, true])
})

test('a warning after several times uses all of them', () => {
  const used = (message: Parameters<typeof warningsUsed>[1], hours: number, before = 0) =>
    warningsUsed(AGES, message, { now: AT + hours * HOUR, before })
  expect([used(PLAIN, 4), used(PLAIN, 30), used(PLAIN, 5, 2)]).toEqual([1, 2, 2])
  expect([used(by(1), 1), used(by(1), 4), used(by(1), 30)]).toEqual([1, 2, 3])
})
