import { expect, test } from 'vitest'
import { recoveryAfterOutage } from '../support/outage-story.ts'

test('100,000 messages that waited four hours for a far side with room for 50', async () => {
  const recovery = await recoveryAfterOutage(100_000)
  expect(recovery.delivered).toBe(100_000)
  expect(recovery.attemptsPerMessage).toBeLessThan(1.1)
  expect(recovery.timesOptimum).toBeLessThan(1.3)
  expect(recovery.busiest).toBeLessThan(1.2)
})
