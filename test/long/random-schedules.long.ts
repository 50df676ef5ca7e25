import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { runSchedules } from '../support/random-schedules.ts'
import { portion } from './portion.ts'

const { from, to } = portion('random-schedules')

test(`after the random schedules ${from} to ${to} on the memory store no mail is stuck`, async () => {
  const schedules = to - from + 1
  const steps = await runSchedules(999_999 + from, schedules)
  printFigures('random schedules', { schedules, steps })
  expect(steps).toBeGreaterThan(5 * schedules)
})
