/** Messages to two recipients, whose destinations belong to two nodes, and which both nodes bounce at once. */
import { shardOf } from '../../../src/store/membership/shards.ts'
import { NodeCluster, until } from '../node-cluster.ts'

export interface BouncedByTwo {
  /** Refused recipients of acknowledged messages. */
  readonly refused: readonly string[]
  /** Number of notices by refused recipient. */
  readonly notices: ReadonlyMap<string, number>
  /** Notices that arrived more than once. */
  readonly repeatedNotices: number
}

/** So many that each node owns some of them: the ports, and so the shards, differ in each run. */
const DESTINATIONS = 24

/** Submits at least so many messages. Resolves when the queue is empty. */
export async function bouncedByTwo(messages: number): Promise<BouncedByTwo> {
  const cluster = await NodeCluster.open({ node_lease: '10s' }, {}, DESTINATIONS)
  try {
    const nodes = await cluster.startAll('n1', 'n2')
    let both: readonly string[] = []
    await until('destinations of both', 60_000, async () => (both = await domainsByOwner(cluster)).length === 2)
    for (const { load } of nodes) load.start(2, (number) => both.map((name) => `refuse-${number}@${name}`))
    const submitted = () => nodes.flatMap(({ load }) => [...load.acknowledged.keys()])
    await until('submitted', 120_000, () => submitted().length >= messages)
    await Promise.all(nodes.map(({ load }) => load.close()))
    const refused = submitted().flatMap((number) => both.map((name) => `refuse-${number}@${name}`))
    const { noticedAbout } = cluster.home
    await until('noticed', 120_000, () => noticedAbout.size >= refused.length)
    await until('empty', 60_000, async () => (await cluster.says('queue', 'list', '--count')).trim() === '0')
    const notices = new Map([...noticedAbout].map(([address, ids]) => [address, ids.size]))
    return { refused, notices, repeatedNotices: cluster.home.repeatedNotices }
  } finally {
    await cluster.close()
  }
}

/** One domain for each node that owns a destination. */
async function domainsByOwner(cluster: NodeCluster): Promise<readonly string[]> {
  const rows = await cluster.server.query('select id, owner from shard where owner is not null')
  const owners = new Map(rows.map((row) => [Number(row['id']), Number(row['owner'])]))
  const owned = cluster.destinations.map((destination, n) => [owners.get(shardOf(destination)), `d${n}.example`] as const)
  return [...new Map(owned.filter(([owner]) => owner !== undefined)).values()]
}
