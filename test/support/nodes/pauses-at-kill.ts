/** A node of three that is killed under load: for how long each destination gets no mail. */
import { shardOf } from '../../../src/store/membership/shards.ts'
import type { NodeCluster } from '../node-cluster.ts'
import { account } from './account.ts'
import { onThreeNodes } from './removal-times.ts'

export interface PausesAtKill {
  /** Longest pauses of the destinations of the killed node, and of those of the others, in ms. */
  readonly own: readonly number[]
  readonly others: readonly number[]
  readonly repeated: number
  readonly refusedYetArrived: readonly number[]
}

/** Time after the kill in which pauses are measured, in ms. */
const MEASURED = 12_000

/** Kills the owner of the first destination. Its client goes on at another node. */
export const pausesAtKill = (): Promise<PausesAtKill> =>
  onThreeNodes(async (cluster, nodes) => {
    const rows = await cluster.server.query('select s.id, n.name from shard s join node n on n.id = s.owner')
    const owners = new Map(rows.map((row) => [Number(row['id']), String(row['name'])]))
    const ownerOf = (destination: string): string => owners.get(shardOf(destination)) ?? ''
    const victim = nodes.find(({ name }) => name === ownerOf(cluster.destinations[0] ?? '')) ?? nodes[0]
    const killed = Date.now()
    victim.process.child.kill('SIGKILL')
    victim.load.port = nodes.find((node) => node !== victim)?.port ?? null
    await new Promise<void>((resolve) => void setTimeout(resolve, MEASURED))
    const pauses = { own: [] as number[], others: [] as number[] }
    cluster.destinations.forEach((name, n) =>
      pauses[ownerOf(name) === victim.name ? 'own' : 'others'].push(longestPause(cluster, n, killed)),
    )
    const { repeated, refusedYetArrived } = await account(cluster, nodes, 60_000)
    return { ...pauses, repeated, refusedYetArrived }
  })

/** The longest time without mail for a destination. */
function longestPause(cluster: NodeCluster, destination: number, from: number): number {
  const to = from + MEASURED
  const times = (cluster.far[destination]?.deliveredTo.get(`user@d${destination}.example`) ?? []).filter((at) => at > from && at < to)
  return Math.max(...[...times, to].map((at, n) => at - (times[n - 1] ?? from)))
}
