/**
 * After an outage the mail that waited leaves as fast as the far side lets it, and the far side is not stormed.
 * The same with 100,000 messages is in test/long.
 */
import { expect, test } from 'vitest'
import { recoveryAfterOutage } from '../support/outage-story.ts'

test('10,000 messages that waited four hours for a far side with room for 50', async () => {
  const { delivered, attemptsPerMessage, timesOptimum, busiest } = await recoveryAfterOutage(10_000)
  expect(delivered).toBe(10_000)
  expect(attemptsPerMessage).toBeLessThan(1.1)
  expect(timesOptimum).toBeLessThan(1.3)
  expect(busiest).toBeLessThan(1.2)
})
