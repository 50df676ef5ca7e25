/**
 * After an outage, the backlog is delivered as fast as the remote server accepts it, without a burst of connections.
 * The same with 100,000 messages is in test/long.
 */
import { expect, test } from 'vitest'
import { recoveryAfterOutage } from '../support/outage-recovery.ts'

test('10,000 messages that waited four hours for a server with 50 connections', async () => {
  const { delivered, attemptsPerMessage, timesOptimum, busiest } = await recoveryAfterOutage(10_000)
  expect(delivered).toBe(10_000)
  expect(attemptsPerMessage).toBeLessThan(1.1)
  expect(timesOptimum).toBeLessThan(1.3)
  expect(busiest).toBeLessThan(1.2)
})
