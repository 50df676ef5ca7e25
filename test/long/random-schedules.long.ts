import { expect, test } from 'vitest'
import { runSchedules } from '../support/random-schedules.ts'

test('after 1,000,000 random schedules on the memory store no mail is stuck', async () => {
  const steps = await runSchedules(1_000_000, 1_000_000)
  console.log(`1,000,000 schedules, ${steps} steps`)
  expect(steps).toBeGreaterThan(5_000_000)
})
