/**
 * Three nodes of which one is killed, one frozen and cut off, and one ends in order, under load: the time until each is removed, so that
 * others schedule its destinations.
 */
import { until, NodeCluster, type ClusterNode } from '../node-cluster.ts'
import { account } from './account.ts'
import { readWatch, watchLeases } from './lease-watch.ts'

/** Times in ms. */
export interface RemovalTimes {
  readonly killed: number
  readonly frozen: number
  readonly cut: number
  readonly left: number
  readonly refusedYetArrived: readonly number[]
  readonly foreignOutcomes: number
}

const DESTINATIONS = 6
const recipientOf = (number: number): string => `user@d${number % DESTINATIONS}.example`
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

export type ThreeNodes = readonly [ClusterNode, ClusterNode, ClusterNode]

/** Three nodes with the default lease of 5 s and deliveries of 300 ms, under load. */
export async function onThreeNodes<T>(run: (cluster: NodeCluster, nodes: ThreeNodes) => Promise<T>): Promise<T> {
  const cluster = await NodeCluster.open({ node_lease: '5s', default_destination_concurrency_limit: '5' })
  try {
    for (const far of cluster.far) far.delay = 300
    const [first, second, third] = await cluster.startAll('n1', 'n2', 'n3')
    if (first === undefined || second === undefined || third === undefined) throw new Error('three nodes were started')
    await cluster.shared('n1', 'n2', 'n3')
    await watchLeases(cluster.server)
    for (const { load } of cluster.nodes.values()) {
      load.pace = 20
      load.start(2, recipientOf)
    }
    await pause(2_000)
    return await run(cluster, [first, second, third])
  } finally {
    await cluster.close()
  }
}

/** Time until the node is removed, in ms. */
async function removalOf(cluster: NodeCluster, { name }: ClusterNode): Promise<number> {
  const [row] = await cluster.server.query(`select id from node where name = '${name}'`)
  const begun = performance.now()
  await until(
    `${name} removed`,
    30_000,
    async () => (await cluster.server.query(`select 1 from node where id = ${Number(row?.['id'])}`)).length === 0,
  )
  return performance.now() - begun
}

export const removalTimes = (): Promise<RemovalTimes> =>
  onThreeNodes(async (cluster, [first, second, third]) => {
    first.process.child.kill('SIGKILL')
    const killed = await removalOf(cluster, first)
    second.process.child.kill('SIGSTOP')
    const frozen = await removalOf(cluster, second)
    second.process.child.kill('SIGCONT')
    await second.process.prints('was taken over by another one')
    await cluster.shared('n2', 'n3')
    second.proxy.stall()
    const cut = await removalOf(cluster, second)
    second.proxy.cut()
    second.proxy.deliver()
    await cluster.shared('n2', 'n3')
    third.process.child.kill('SIGTERM')
    const left = await removalOf(cluster, third)
    await cluster.shared('n2')
    const { refusedYetArrived } = await account(cluster, [first, second, third], 60_000)
    const { foreignOutcomes } = await readWatch(cluster.server)
    return { killed, frozen, cut, left, refusedYetArrived, foreignOutcomes }
  })
