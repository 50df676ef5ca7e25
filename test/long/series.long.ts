import { describe, expect, test } from 'vitest'
import { expectExact } from '../support/exact-series.ts'
import { printFigures } from '../support/figures.ts'
import { seriesAfterKills, seriesOfTwoNodes, type CountedSeries } from '../support/killed-series.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()

const KILLS = 50

const print = (about: string, { acknowledged, traffic, left }: CountedSeries): void =>
  printFigures(about, { kills: KILLS, acknowledged, ...traffic, left })

test(`the series of a daemon that is killed ${KILLS} times have the counts of its queue`, async () => {
  const series = await seriesAfterKills(KILLS, 2)
  print('series of a killed daemon', series)
  expect(series.acknowledged).toBeGreaterThan(10 * KILLS)
  expectExact(series, ['destination', 'sender_domain'])
})

describe.skipIf(reason !== null)(`two nodes${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  test(`the series of two nodes that are killed ${KILLS} times have the counts of their queue`, async () => {
    const series = await seriesOfTwoNodes(KILLS, 2)
    print('series of two killed nodes', series)
    expect(series.acknowledged).toBeGreaterThan(10 * KILLS)
    expectExact(series, ['destination', 'sender_domain', 'node'])
  })
})
