/** Accounts for the mail of all clients of a cluster. */
import { until, type ClusterNode, type NodeCluster } from '../node-cluster.ts'

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

export interface Account {
  /** Number of messages that were answered 250. All have arrived, or their sender has a notice. */
  readonly acknowledged: number
  /** Number of deliveries beyond the first of each message, notices included. */
  readonly repeated: number
  /** Messages that were refused after the final dot and arrived. */
  readonly refusedYetArrived: readonly number[]
}

/** Ends the clients of these nodes and waits for their mail. Rejects with the numbers that have not arrived after `limit` ms. */
export async function account(cluster: NodeCluster, nodes: readonly ClusterNode[], limit = 30_000): Promise<Account> {
  await Promise.all(nodes.map(({ load }) => load.close()))
  const acknowledged = nodes.flatMap(({ load }) => [...load.acknowledged.keys()])
  const refused = nodes.flatMap(({ load }) => [...load.refused])
  const arrived = (): ReadonlySet<number> => new Set([...cluster.delivered().keys(), ...cluster.home.noticed.keys()])
  const lost = (): readonly number[] => {
    const all = arrived()
    return acknowledged.filter((number) => !all.has(number))
  }
  await until('all arrived', limit, async () => {
    if (lost().length === 0) return true
    await pause(200)
    return false
  }).catch(() => {
    throw new Error(`after ${limit} ms these acknowledged messages have not arrived: ${lost().join(' ')}`)
  })
  const delivered = cluster.delivered()
  const all = arrived()
  return {
    acknowledged: acknowledged.length,
    repeated: [...delivered.values()].reduce((sum, times) => sum + times - 1, cluster.home.repeatedNotices),
    refusedYetArrived: refused.filter((number) => all.has(number)),
  }
}
