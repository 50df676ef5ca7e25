import { expect, test } from 'vitest'
import { runSchedules } from '../support/store-schedules.ts'

test('after 1,000,000 random schedules on the memory store nothing is ever stuck', async () => {
  const steps = await runSchedules(1_000_000, 1_000_000)
  console.log(`1,000,000 schedules, ${steps} steps`)
  expect(steps).toBeGreaterThan(5_000_000)
})
