import { expect, test } from 'vitest'
import { runSchedules } from '../support/store-schedules.ts'

test('after 10,000 random schedules on the memory store nothing is ever stuck', async () => {
  expect(await runSchedules(1, 10_000)).toBeGreaterThan(50_000)
})
