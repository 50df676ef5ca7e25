/** A database that is away for a while during 100 deliveries of three nodes. */
import { until, NodeCluster, type ClusterNode } from '../node-cluster.ts'
import { account } from './account.ts'

export interface AbsenceFigures {
  /** Time from the return of the database to the first 250, in ms. */
  readonly accepted: number
  /** Time from the return of the database to the first 250 of each node, in ms. */
  readonly acceptedByAll: number
  /** Deliveries beyond the first of each message. */
  readonly repeated: number
  /** Nodes whose log says that one was taken over. */
  readonly takeovers: number
  /** Nodes whose log says that mail was deferred because its content could not be read. */
  readonly postponed: number
  readonly refusedYetArrived: readonly number[]
}

const DESTINATIONS = 6
const recipientOf = (number: number): string => `user@d${number % DESTINATIONS}.example`
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Rejects when acknowledged mail is lost, or the queue is not empty at the end. */
export async function absentDatabase(seconds: number): Promise<AbsenceFigures> {
  const cluster = await NodeCluster.open({ node_lease: '5s', initial_destination_concurrency: '20' })
  try {
    for (const far of cluster.far) far.delay = 3_000
    const nodes = await cluster.startAll('n1', 'n2', 'n3')
    await cluster.shared('n1', 'n2', 'n3')
    for (const { load } of nodes) {
      load.pace = 10
      load.leavesAfterRefusal = true
      load.start(2, recipientOf)
    }
    await until('100 in delivery', 60_000, () => cluster.far.reduce((sum, { inTransfer }) => sum + inTransfer, 0) >= 100)
    await cluster.server.stop('immediate')
    // The others may wait for the answer to a commit.
    for (const { load } of nodes) load.start(1, recipientOf)
    const refusals = () => nodes.map(({ load }) => load.refusals.filter((reply) => reply.startsWith('451 4.3.0')).length)
    await until('refused by all', 30_000, () => refusals().every((count) => count > 0))
    await pause(seconds * 1_000)
    await cluster.server.start()
    const back = Date.now()
    const first = ({ load }: ClusterNode) => Math.min(...[...load.acknowledgedAt.values()].filter((at) => at > back)) - back
    await until('accepting', 30_000, () => nodes.every((node) => first(node) < Infinity))
    const times = nodes.map(first)
    const { repeated, refusedYetArrived } = await account(cluster, nodes, 30_000)
    const takeovers = nodes.filter(({ process }) => process.err.includes('taken over')).length
    const postponed = nodes.filter(({ process }) => process.err.includes('cannot read its content')).length
    await until('empty', 30_000, async () => (await cluster.says('queue', 'list', '--count')).trim() === '0')
    return { accepted: Math.min(...times), acceptedByAll: Math.max(...times), repeated, takeovers, postponed, refusedYetArrived }
  } finally {
    await cluster.close()
  }
}
