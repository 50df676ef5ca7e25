/** Schedules of several nodes on one queue: each run is made once, by any of them, also when a node is killed. */
import { describe, expect, test } from 'vitest'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()
const SCHEDULE = '[schedule.often]\nat = "* * * * * *"\ndo = "flush"\ndestinations = "*"\n'

describe.skipIf(reason !== null)(
  `schedules of several nodes${reason === null ? '' : ` (skipped: ${reason})`}`,
  { timeout: 240_000 },
  () => {
    test('each run is made once, and the others go on when a node is killed', async () => {
      const cluster = await NodeCluster.open({}, {}, 2, SCHEDULE)
      try {
        const [first, second] = await cluster.startAll('n1', 'n2')
        const runs = async () =>
          cluster.server.query(`select planned, node from schedule_run where name = 'often' and ended_at is not null`)
        await until('eight runs', 120_000, async () => (await runs()).length >= 8)
        first?.process.child.kill('SIGKILL')
        const before = (await runs()).length
        await until(
          'four more',
          120_000,
          async () => (await runs()).filter(({ node }) => node === 'n2').length >= 4 && (await runs()).length >= before + 4,
        )
        const all = await runs()
        expect(new Set(all.map(({ planned }) => String(planned))).size).toBe(all.length)
        const lines = [first, second]
          .flatMap((node) => node?.process.err.split('\n') ?? [])
          .filter((line) => line.includes('schedule often (flush): '))
        // A node has a line for each of its runs; that of the run during the kill may have no outcome in the queue.
        expect(lines.length).toBeLessThanOrEqual((await runs()).length + 2)
      } finally {
        await cluster.close()
      }
    })
  },
)
