/** Three daemons on one queue in PostgreSQL, under load, with random faults of nodes and of the database. */
import { describe, expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { randomFaults } from '../support/nodes/random-faults.ts'
import { portion } from './portion.ts'

const reason = reasonWithoutPostgres()

const { from, to } = portion('nodes')
const seeds = Array.from({ length: to - from + 1 }, (_, n) => from + n)

describe.skipIf(reason !== null)(`three nodes${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  test.each(seeds)('50 random faults of nodes and 10 of the database, seed %i', async (seed) => {
    const tally = await randomFaults({ nodeFaults: 50, databaseFaults: 10, seed })
    printFigures('random faults of nodes', { seed, ...tally })
    expect(tally).toMatchObject({ foreignOutcomes: 0, noticedTwice: [], refusedYetArrived: [], left: 0 })
    expect(tally).toMatchObject({ begunAfterRemoval: 0, connectedAfterRemoval: 0 })
    expect(tally.repeated).toBeLessThanOrEqual(tally.inFlight)
  })
})
