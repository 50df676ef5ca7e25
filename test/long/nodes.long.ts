/** Three daemons on one queue in PostgreSQL, under load, with random faults of nodes and of the database. */
import { expect, test } from 'vitest'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { randomFaults } from '../support/nodes/random-faults.ts'

const reason = reasonWithoutPostgres()

// The full form has NODE_FAULTS=500 DATABASE_FAULTS=100.
const { NODE_FAULTS = '50', DATABASE_FAULTS = '10', NODE_SEED = '16' } = process.env

test.skipIf(reason !== null)(
  `nodes under random faults${reason === null ? '' : ` (skipped: ${reason})`}`,
  { timeout: 7_200_000 },
  async () => {
    const tally = await randomFaults({
      nodeFaults: Number(NODE_FAULTS),
      databaseFaults: Number(DATABASE_FAULTS),
      seed: Number(NODE_SEED),
    })
    console.log(`seed ${NODE_SEED}:`, JSON.stringify(tally))
    expect(tally).toMatchObject({ foreignOutcomes: 0, noticedTwice: [], refusedYetArrived: [], left: 0 })
    expect(tally).toMatchObject({ begunAfterRemoval: 0, connectedAfterRemoval: 0 })
    expect(tally.repeated).toBeLessThanOrEqual(tally.inFlight)
  },
)
