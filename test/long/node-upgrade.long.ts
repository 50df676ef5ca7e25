/** An upgrade of the nodes of a shared queue to a next release with a migration, one node after the other, while mail flows. */
import { describe, expect, test } from 'vitest'
import { account } from '../support/nodes/account.ts'
import { nextRelease } from '../support/nodes/next-release.ts'
import { NodeCluster, until, type ClusterNode } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()
const recipientOf = (number: number): string => `user@d${number % 6}.example`

/** Sends a client to another node, as a load balancer does. */
async function direct({ load }: ClusterNode, port: number): Promise<void> {
  load.pace = null
  await until('disconnected', 30_000, () => load.sessions === 0)
  load.port = port
  load.pace = 20
}

/** Ends a node in order while its client submits at another one, as behind a load balancer, and starts the program that is current. */
async function replace(cluster: NodeCluster, client: ClusterNode, other: ClusterNode): Promise<void> {
  const { name, load, port } = client
  await direct(client, other.port)
  const node = cluster.nodes.get(name)
  if (node === undefined) throw new Error(`${name} does not run`)
  await cluster.says('node', 'drain', name, '--wait')
  node.process.child.kill('SIGTERM')
  expect(await node.process.ended).toMatchObject({ code: 0 })
  await cluster.restart(node)
  const submitted = load.acknowledged.size
  await direct(client, port)
  await until(`${name} accepts`, 30_000, () => load.acknowledged.size > submitted + 3)
}

describe.skipIf(reason !== null)(`upgrade of nodes${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  test('no mail is refused, lost or repeated, and an older program is refused when the upgrade is finished', async () => {
    const next = nextRelease()
    const cluster = await NodeCluster.open({ node_lease: '10s' })
    try {
      const [first, second] = await cluster.startAll('n1', 'n2')
      if (first === undefined || second === undefined) throw new Error('two nodes were started')
      await cluster.shared('n1', 'n2')
      for (const { load } of [first, second]) {
        load.pace = 20
        load.start(2, recipientOf)
      }
      const schema = async () => JSON.parse(await cluster.says('queue', 'upgrade', '--json')) as object

      cluster.program = next.program
      await replace(cluster, first, second)
      expect(await schema()).toEqual({ schema: next.migration, oldest_usable: next.migration - 1, finished: false })
      const early = await cluster.run(['queue', 'upgrade', '--finish']).ended
      expect(early).toMatchObject({ code: 75, err: expect.stringContaining('an older deferd runs at n2') as string })

      // A node of the former release may be started again before the end.
      cluster.program = undefined
      await replace(cluster, second, first)
      cluster.program = next.program
      await replace(cluster, second, first)
      await cluster.says('queue', 'upgrade', '--finish')
      expect(await schema()).toEqual({ schema: next.migration, oldest_usable: next.migration, finished: true })

      cluster.program = undefined
      const { code, err } = await cluster.run(['start']).ended
      expect({ code, err }).toEqual({ code: 78, err: expect.stringContaining('newer') as string })
      cluster.program = next.program
      const { acknowledged, ...rest } = await account(cluster, [first, second])
      expect(acknowledged).toBeGreaterThan(20)
      expect(rest).toEqual({ repeated: 0, refusedYetArrived: [] })
      expect([...first.load.refusals, ...second.load.refusals]).toEqual([])
    } finally {
      await cluster.close()
      next.remove()
    }
  })
})
