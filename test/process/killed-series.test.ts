import { describe, expect, test } from 'vitest'
import { expectExact } from '../support/exact-series.ts'
import { seriesAfterKills, seriesOfTwoNodes, SOME } from '../support/killed-series.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()

test('the series of a daemon that is killed have the counts of its queue', { timeout: 300_000 }, async () => {
  const series = await seriesAfterKills(3, 1)
  expect(series.acknowledged).toBeGreaterThan(SOME)
  expectExact(series, ['destination', 'sender_domain'])
})

describe.skipIf(reason !== null)(`two nodes${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  test('the series of nodes that are killed have the counts of their queue', { timeout: 300_000 }, async () => {
    const series = await seriesOfTwoNodes(3, 1)
    expect(series.acknowledged).toBeGreaterThan(SOME)
    expectExact(series, ['destination', 'sender_domain', 'node'])
  })
})
