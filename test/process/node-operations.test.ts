/** Operations of commands on mail that several nodes have claimed: nothing of it is begun after the answer, also by a node that is stopped. */
import { describe, expect, test } from 'vitest'
import { NodeCluster, until, type ClusterNode } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()
const DESTINATIONS = 12
const MESSAGES = 60
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

interface Changed {
  readonly changed: number
  readonly in_transfer: number
}

/** Three nodes with one slot each, and remote servers that answer the final dot when they are told to. */
async function busyCluster(lease: string) {
  const cluster = await NodeCluster.open({ node_lease: lease, default_process_limit: '1' }, {}, DESTINATIONS)
  const gate = Promise.withResolvers<void>()
  for (const far of cluster.far) far.gate = gate.promise
  const nodes = await cluster.startAll('n1', 'n2', 'n3')
  await cluster.shared('n1', 'n2', 'n3')
  const [first] = nodes
  if (first === undefined) throw new Error('three nodes were started')
  first.load.start(2, (number) => `user@d${number % DESTINATIONS}.example`)
  await until('accepted', 60_000, () => first.load.acknowledged.size >= MESSAGES)
  first.load.pace = null
  await until('submitted', 30_000, () => first.load.sessions === 0)
  const claims = async (): Promise<ReadonlyMap<number, number>> => {
    const rows = await cluster.server.query(
      `select leased_by as node, count(*)::int as n from recipient where leased_by is not null group by 1`,
    )
    return new Map(rows.map((row) => [Number(row['node']), Number(row['n'])]))
  }
  // Two nodes, or three, have more claims than their slot: as many as own shards of the destinations.
  await until('claimed', 60_000, async () => {
    const held = [...(await claims()).values()]
    return held.length > 1 && held.length === begun(cluster) && held.every((count) => count > 1)
  })
  return { cluster, nodes, claims, gate, transfers: begun(cluster), accepted: first.load.acknowledged.size }
}

const begun = (cluster: NodeCluster): number => cluster.far.reduce((sum, far) => sum + far.begun.length, 0)

const numberOf = async (cluster: NodeCluster, { name }: ClusterNode): Promise<number> => {
  const [row] = await cluster.server.query(`select id from node where name = '${name}'`)
  return Number(row?.['id'])
}

describe.skipIf(reason !== null)(
  `operations on the claims of several nodes${reason === null ? '' : ` (skipped: ${reason})`}`,
  { timeout: 240_000, concurrent: true },
  () => {
    test('a hold from another machine: what is in transfer ends, and nothing else is begun at any node', async () => {
      const { cluster, transfers, gate, claims, accepted } = await busyCluster('10s')
      try {
        const answer = JSON.parse(await cluster.says('queue', 'hold', '--all', '--json')) as Changed
        expect(answer).toMatchObject({ changed: accepted, in_transfer: transfers })
        expect([...(await claims()).values()]).toEqual(Array.from({ length: transfers }, () => 1))
        gate.resolve()
        await until('at rest', 30_000, async () => (await claims()).size === 0)
        await pause(2_000)
        expect(begun(cluster)).toBe(transfers)
        await cluster.says('queue', 'release', '--all')
        await until('delivered', 60_000, () => cluster.delivered().size === accepted)
        expect([...cluster.delivered().values()].every((times) => times === 1)).toBe(true)
      } finally {
        gate.resolve()
        await cluster.close()
      }
    })

    test('a node is stopped: the command answers when the node is taken over, and the node begins nothing when it goes on', async () => {
      const { cluster, nodes, transfers, gate, claims, accepted } = await busyCluster('5s')
      try {
        const holders = await claims()
        const numbers = await Promise.all(nodes.map((node) => numberOf(cluster, node)))
        const index = numbers.findIndex((number) => holders.has(number))
        const [stopped, number] = [nodes[index], numbers[index] ?? 0]
        if (stopped === undefined) throw new Error('no node has claims')
        stopped.process.child.kill('SIGSTOP')
        // It would end with 75 if the node were neither silent nor answering for node_lease and 2 s.
        const answer = JSON.parse(await cluster.says('queue', 'delete', '--all', '--json')) as Changed
        expect(answer.changed).toBe(accepted)
        expect((await claims()).has(number)).toBe(false)
        stopped.process.child.kill('SIGCONT')
        gate.resolve()
        await until('at rest', 30_000, async () => (await claims()).size === 0)
        await pause(2_000)
        expect(begun(cluster)).toBe(transfers)
      } finally {
        gate.resolve()
        await cluster.close()
      }
    })
  },
)
