/**
 * Three daemons on one queue in PostgreSQL, under load, with random faults: kills, stops, ended sessions, and crashes and hangs of the
 * server. No acknowledged mail is lost, and what is delivered twice was in flight at a fault.
 */
import { expect, test } from 'vitest'
import { seededRandom } from '../../src/system/random.ts'
import { NodeCluster, until, type ClusterNode } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()
const FAULTS = 60
const DESTINATIONS = 6
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

type Fault = (cluster: NodeCluster, node: ClusterNode, wait: number) => Promise<void>

const FAULT_KINDS: Readonly<Record<string, Fault>> = {
  'node killed': async (cluster, node, wait) => {
    node.process.child.kill('SIGKILL')
    await node.process.ended
    await pause(wait)
    await cluster.restart(node)
  },
  'node stopped': async (_, node, wait) => {
    node.process.child.kill('SIGSTOP')
    await pause(wait * 2)
    node.process.child.kill('SIGCONT')
  },
  'sessions ended': async (cluster) => {
    await cluster.server.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'deferd %'`)
  },
  'server crashed': async (cluster, _, wait) => {
    await cluster.server.stop('kill')
    await pause(wait)
    await cluster.server.start()
  },
  'server frozen': async (cluster, _, wait) => {
    cluster.server.freeze()
    await pause(wait)
    cluster.server.thaw()
  },
}

test.skipIf(reason !== null)(
  `nodes under random faults${reason === null ? '' : ` (skipped: ${reason})`}`,
  { timeout: 1_800_000 },
  async () => {
    const chance = seededRandom(16).stream('faults')
    const cluster = await NodeCluster.open({ node_lease: '3s', default_destination_concurrency_limit: '5' })
    try {
      for (const far of cluster.far) far.delay = 30
      const nodes = await cluster.startAll('n1', 'n2', 'n3')
      await cluster.shared('n1', 'n2', 'n3')
      for (const { load } of nodes) {
        load.pace = 20
        load.start(2, (number) => `user@d${number % DESTINATIONS}.example`)
      }
      let inFlight = 0
      const counts = new Map<string, number>()
      const kinds = Object.entries(FAULT_KINDS)
      for (let n = 0; n < FAULTS; n++) {
        await pause(500 + 2_000 * chance())
        const [name, fault] = kinds[Math.floor(kinds.length * chance())] ?? kinds[0]!
        const node = [...cluster.nodes.values()][Math.floor(3 * chance())]!
        counts.set(name, (counts.get(name) ?? 0) + 1)
        inFlight += DESTINATIONS * 5
        await fault(cluster, node, 3_000 * chance())
      }
      await Promise.all(nodes.map(({ load }) => load.close()))
      const numbers = nodes.flatMap(({ load }) => [...load.acknowledged.keys()])
      await until('delivered', 180_000, () => numbers.every((number) => cluster.delivered().has(number)))
      const repeated = [...cluster.delivered().values()].reduce((sum, times) => sum + times - 1, 0)
      console.log(
        `faults: ${[...counts].map(([name, count]) => `${name} ${count}`).join(', ')}; acknowledged ${numbers.length}, repeated ${repeated}, lost 0`,
      )
      expect(repeated).toBeLessThanOrEqual(inFlight)
      await until('empty', 60_000, async () => (await cluster.says('queue', 'list', '--count')).trim() === '0')
      const leases = await cluster.server.query(`select count(*)::int as left from recipient where leased_by is not null`)
      expect(leases).toEqual([{ left: 0 }])
    } finally {
      await cluster.close()
    }
  },
)
