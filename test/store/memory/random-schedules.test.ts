import { expect, test } from 'vitest'
import { runSchedules } from '../../support/random-schedules.ts'

test('after 10,000 random schedules on the memory store no mail is stuck', async () => {
  expect(await runSchedules(1, 10_000)).toBeGreaterThan(50_000)
})
