/** Mail of three nodes for one destination that is dead, whose owner is killed. */
import { shardOf } from '../../../src/store/membership/shards.ts'
import { NodeCluster, until } from '../node-cluster.ts'

/** First interval between probes, in ms. */
const FIRST_INTERVAL = 2_000
/** Number of probes before the owner is killed, and after it. */
const [PROBES_BEFORE, PROBES_AFTER] = [2, 2]

/** Times between the probes, in ms. The owner was killed between the second and the third one. */
export async function intervalsOfProbes(messages: number): Promise<readonly number[]> {
  const cluster = await NodeCluster.open({ node_lease: '2s', minimal_backoff_time: `${FIRST_INTERVAL}ms`, maximal_backoff_time: '1h' })
  try {
    const nodes = await cluster.startAll('n1', 'n2', 'n3')
    await cluster.shared('n1', 'n2', 'n3')
    const [[far], [dead]] = [cluster.far, cluster.destinations]
    if (far === undefined || dead === undefined) throw new Error('the cluster has remote servers')
    await cluster.says('destination', 'suspend', dead)
    for (const { load } of nodes) load.start(4, () => 'user@d0.example')
    await until('queued', 300_000, () => nodes.reduce((sum, { load }) => sum + load.acknowledged.size, 0) >= messages)
    await Promise.all(nodes.map(({ load }) => load.close()))

    far.isDead = true
    await cluster.says('destination', 'resume', dead)
    const record = `select name from destination where name = '${dead}' and dead_until is not null`
    await until('dead', 60_000, async () => (await cluster.server.query(record)).length === 1)
    const before = far.connections.length
    const probes = (): readonly number[] => far.connections.slice(before)
    await until('probed', 60_000, () => probes().length >= PROBES_BEFORE)
    const [row] = await cluster.server.query(`select name from node where id = (select owner from shard where id = ${shardOf(dead)})`)
    const owner = cluster.nodes.get(String(row?.['name']))
    if (owner === undefined) throw new Error(`${dead} has no owner`)
    owner.process.child.kill('SIGKILL')
    await until('probed by another node', 120_000, () => probes().length >= PROBES_BEFORE + PROBES_AFTER)
    const times = probes()
    return times.slice(1).map((at, n) => at - (times[n] ?? 0))
  } finally {
    await cluster.close()
  }
}
