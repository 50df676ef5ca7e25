import { expect, test } from 'vitest'
import { claimCost } from '../support/claim-cost.ts'
import { relayGiant } from '../support/giant-story.ts'
import { recoveryAfterOutage } from '../support/outage-story.ts'
import { medianOfTheOthers } from '../support/tarpit-story.ts'

test('100,000 messages that waited four hours for a far side with room for 50', async () => {
  const recovery = await recoveryAfterOutage(100_000)
  expect(recovery.delivered).toBe(100_000)
  expect(recovery.attemptsPerMessage).toBeLessThan(1.1)
  expect(recovery.timesOptimum).toBeLessThan(1.3)
  expect(recovery.busiest).toBeLessThan(1.2)
})

test('300 MB are taken in and sent on within 128 MB of memory', async () => {
  const { growth, arrived } = await relayGiant(300)
  expect(arrived).toBeGreaterThan(301)
  expect(growth).toBeLessThan(128)
})

test.each(['tarpit', 'dead'] as const)('a %s with 500,000 due messages costs the others nothing', async (sickness) => {
  const without = await medianOfTheOthers(sickness, 0)
  expect(await medianOfTheOthers(sickness, 500_000)).toBeLessThan(1.05 * without)
})

test('a claim among 1,000,000 messages costs no more than twice a claim among 1,000', async () => {
  const small = await claimCost(1_000)
  expect(await claimCost(100_000)).toBeLessThan(2 * small)
  expect(await claimCost(1_000_000)).toBeLessThan(2 * small)
})
