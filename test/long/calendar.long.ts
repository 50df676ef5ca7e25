import fc from 'fast-check'
import { test } from 'vitest'
import { compareZone } from '../calendar/compared-runs.ts'
import { anyExpression, ZONES, type Zone } from '../support/cron-oracle.ts'
import { printFigures } from '../support/figures.ts'

test('200 random expressions in five zones have the instants of croner, and those of the two rules on days with a change', () => {
  let instants = 0
  const zones = Object.keys(ZONES) as Zone[]
  fc.assert(
    fc.property(anyExpression, (expression) => {
      for (const zone of zones) instants += compareZone(expression, zone)
    }),
    { numRuns: 200 },
  )
  printFigures('calendar', { expressions: 200, zones: zones.length, 'compared instants': instants })
})
