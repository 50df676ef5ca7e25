/** Races of cancellations against the begin of attempts: 50 in each seed in virtual time, and with three daemons on PostgreSQL. */
import { describe, expect, test } from 'vitest'
import { raceCancellations } from '../support/cancel-races.ts'
import { printFigures } from '../support/figures.ts'
import { raceOnNodes } from '../support/nodes/cancel-on-nodes.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { portion } from './portion.ts'

const { isIncluded, from, to } = portion('cancellation/one-node')

test.runIf(isIncluded)(`races of seeds ${from} to ${to}: never an answer and a delivery, never neither`, async () => {
  const sums = { races: 0, cancelled: 0, 'too late': 0 }
  for (let seed = from; seed <= to; seed++) {
    const { cancelled, tooLate, ...faults } = await raceCancellations(seed)
    expect({ seed, ...faults }).toEqual({ seed, broken: [], lost: [] })
    sums.races += 50
    sums.cancelled += cancelled
    sums['too late'] += tooLate
  }
  printFigures('races of cancellations', sums)
})

const NONE = { begunAfter: [], both: [], neither: [] }
const reason = reasonWithoutPostgres()

describe.skipIf(reason !== null)(`three nodes${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  const races = portion('cancellation/nodes')
  const killed = portion('cancellation/killed')
  const seeds = ({ from: first, to: last }: typeof races) => Array.from({ length: last - first + 1 }, (_, n) => first + n)

  test.runIf(races.isIncluded).each(seeds(races))('1,000 races: never an answer and a delivery, never neither, seed %i', async (seed) => {
    const { begunAfter, both, neither, ...figures } = await raceOnNodes({ races: 1_000, kills: 0, seed })
    printFigures('races of cancellations on three nodes', { seed, ...figures })
    expect({ begunAfter, both, neither }).toEqual(NONE)
    expect(figures).toMatchObject({ deliveredAtRemoval: 0 })
    expect(Math.min(figures.cancelled, figures.tooLate)).toBeGreaterThan(100)
  })

  test.runIf(killed.isIncluded).each(seeds(killed))('the same while daemons are killed 30 times, seed %i', async (seed) => {
    const { begunAfter, both, neither, ...figures } = await raceOnNodes({ races: 100, kills: 30, seed })
    printFigures('races of cancellations on three nodes that are killed', { seed, ...figures })
    expect({ begunAfter, both, neither }).toEqual(NONE)
    expect(figures).toMatchObject({ kills: 30 })
  })
})
