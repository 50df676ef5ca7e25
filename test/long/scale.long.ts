import { expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { countedAtStart } from '../support/counted-million.ts'
import { claimCost } from '../support/claim-cost.ts'
import { deliverToMany } from '../support/many-recipients.ts'
import { relayLargeMessage } from '../support/large-message.ts'
import { recoveryAfterOutage } from '../support/outage-recovery.ts'
import { scrapesBesideMail } from '../support/scrapes.ts'
import { medianLatencyOfOthers } from '../support/slow-destination.ts'
import { portion } from './portion.ts'

const ofDelivery = portion('scale/delivery').isIncluded

test.runIf(ofDelivery)('100,000 messages that waited four hours for a server with 50 connections', async () => {
  const recovery = await recoveryAfterOutage(100_000)
  expect(recovery.delivered).toBe(100_000)
  expect(recovery.attemptsPerMessage).toBeLessThan(1.1)
  expect(recovery.timesOptimum).toBeLessThan(1.3)
  expect(recovery.busiest).toBeLessThan(1.2)
})

test.runIf(ofDelivery)('a message to 100,000 recipients is delivered in batches, and does not delay a small one', () =>
  deliverToMany(100_000),
)

test.runIf(ofDelivery)('a message of 300 MB is relayed within 128 MB of memory', async () => {
  const { growth, arrived } = await relayLargeMessage(300)
  expect(arrived).toBeGreaterThan(301)
  expect(growth).toBeLessThan(128)
})

test.runIf(ofDelivery).each(['tarpit', 'dead'] as const)(
  'a %s destination with 500,000 due messages does not delay the others',
  async (failure) => {
    const without = await medianLatencyOfOthers(failure, 0)
    expect(await medianLatencyOfOthers(failure, 500_000)).toBeLessThan(1.05 * without)
  },
)

test.runIf(portion('scale/claims').isIncluded)(
  'a claim among 1,000,000 messages costs no more than twice a claim among 1,000',
  async () => {
    const small = await claimCost(1_000)
    expect(await claimCost(100_000)).toBeLessThan(2 * small)
    expect(await claimCost(1_000_000)).toBeLessThan(2 * small)
  },
)

test.runIf(portion('scale/scrapes').isIncluded)(
  '20 scrapes of /metrics beside 1,000,000 messages delay neither SMTP clients nor health checks',
  async () => {
    const figures = await scrapesBesideMail(1_000_000, 10_000)
    printFigures('scrapes beside 1,000,000 messages', { ...figures })
    expect(figures.greeting.p99).toBeLessThan(100)
    expect(figures.health.p99).toBeLessThan(100)
    expect(figures.firstPage.median).toBeLessThan(5)
  },
)

test.runIf(portion('scale/limits').isIncluded)(
  'a limit that is set on 1,000,000 messages refuses nothing before they are counted',
  async () => {
    const figures = await countedAtStart(1_000_000)
    printFigures('a limit on 1,000,000 messages', { ...figures, refusals: figures.refusals.length })
    expect(figures.acceptedMeanwhile).toBeGreaterThan(0)
    expect(figures.firstAccept).toBeLessThan(10_000)
    expect(figures.untilCounted).toBeLessThan(60_000)
    expect(new Set(figures.refusals)).toEqual(new Set(['452 4.3.1 Error: queue is full, try again later']))
  },
)
