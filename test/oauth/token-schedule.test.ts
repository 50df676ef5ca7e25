import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mayReplace, pauseAfter, renewalTime, usableTime } from '../../src/oauth/token-schedule.ts'
import { HOUR, MINUTE, SECOND } from '../../src/system/clock.ts'

test.each([
  ['an hour: at 80 %', HOUR, 48 * MINUTE, HOUR - 30 * SECOND],
  ['10 minutes: 5 minutes before the end', 10 * MINUTE, 5 * MINUTE, 9.5 * MINUTE],
  ['a minute: at 40 %, before the end of its use', MINUTE, 24 * SECOND, 30 * SECOND],
  ['40 seconds: used for half', 40 * SECOND, 16 * SECOND, 20 * SECOND],
  ['a second: taken for 30, so that there is no storm', SECOND, 12 * SECOND, 15 * SECOND],
])('a lifetime of %s', (_, lifetime, renewal, use) => {
  expect([renewalTime(lifetime), usableTime(lifetime)]).toEqual([renewal, use])
})

test('a renewal begins before the end of the use, which is before the end', () => {
  fc.assert(
    fc.property(fc.integer({ min: 31 * SECOND, max: 48 * HOUR }), (lifetime) => {
      expect(renewalTime(lifetime)).toBeLessThan(usableTime(lifetime))
      expect(usableTime(lifetime)).toBeLessThan(lifetime)
    }),
  )
})

test('requests after failures: 5 s, doubled to 5 minutes; after a refusal 15 minutes', () => {
  expect([1, 2, 3, 6, 7, 8, 1_000].map((failures) => pauseAfter('temporary', failures) / SECOND)).toEqual([5, 10, 20, 160, 300, 300, 300])
  expect(pauseAfter('refused', 1)).toBe(15 * MINUTE)
})

test('a refused token is replaced once in 5 minutes', () => {
  expect([mayReplace(null, 0), mayReplace(0, 5 * MINUTE - 1), mayReplace(0, 5 * MINUTE)]).toEqual([true, false, true])
})
