/** 40 random expressions, each in a random zone, around each change of time. test/long/calendar.long.ts has 200 in all zones. */
import fc from 'fast-check'
import { test } from 'vitest'
import { anyExpression, ZONES, type Zone } from '../support/cron-oracle.ts'
import { compareZone } from './compared-runs.ts'

test('random expressions have the instants of croner, and those of the rules on days with a change', () => {
  fc.assert(
    fc.property(anyExpression, fc.constantFrom(...(Object.keys(ZONES) as Zone[])), (expression, zone) => {
      compareZone(expression, zone)
    }),
    { numRuns: 40 },
  )
})
