/** Daemons that are killed under load, and what the series of their queue count afterwards. */
import { parseDatabaseUrl } from '../../src/config/values/database-url.ts'
import { openPostgresReader } from '../../src/store/postgres/open-reader.ts'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import { NO_COUNTS, SERIES_KINDS, type SeriesCounts, type SeriesDimension } from '../../src/store/records/series.ts'
import { openQueueReader } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { DAY } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { KillableRelay } from './killable-relay.ts'
import { account } from './nodes/account.ts'
import { NodeCluster, until, type ClusterNode } from './node-cluster.ts'

/** Dimensions that count each recipient once. */
const WHOLE = ['destination', 'sender_domain'] as const

/** Messages above which a run shows something; a busy machine may take longer for them than the kills. */
export const SOME = 20

export interface CountedSeries {
  /** Messages that were answered 250. */
  readonly acknowledged: number
  readonly traffic: SeriesCounts
  /** Recipients in the queue at the end. */
  readonly left: number
  /** Sums of each dimension. */
  readonly sums: Readonly<Partial<Record<SeriesDimension, SeriesCounts>>>
}

async function sumOf(reader: QueueReader, dimension: SeriesDimension): Promise<SeriesCounts> {
  const sum: { -readonly [K in keyof SeriesCounts]: number } = { ...NO_COUNTS }
  const query = { dimension, since: 0, until: Number.MAX_SAFE_INTEGER, step: DAY, name: null }
  for (const slot of await reader.records.series.of(query)) for (const kind of SERIES_KINDS) sum[kind] += slot[kind]
  return sum
}

async function counted(reader: QueueReader, acknowledged: number, dimensions: readonly SeriesDimension[]): Promise<CountedSeries> {
  const { deleted: _, ...traffic } = (await reader.traffic(0)).total
  const left = (await reader.counts()).reduce((sum, { recipients }) => sum + recipients, 0)
  const sums = Object.fromEntries(
    await Promise.all(dimensions.map(async (dimension) => [dimension, await sumOf(reader, dimension)] as const)),
  )
  return { acknowledged, traffic, left, sums }
}

/** A daemon that is killed at random moments while it takes and delivers mail. */
export async function seriesAfterKills(kills: number, seed: number): Promise<CountedSeries> {
  const chance = seededRandom(seed).stream('kills')
  const lab = new KillableRelay()
  try {
    await lab.open(4)
    for (let kill = 0; kill < kills; kill++) {
      await lab.startDaemon()
      await lab.die(chance() * 600)
    }
    await lab.startDaemon()
    await until('some mail is acknowledged', 60_000, () => Promise.resolve(lab.acknowledged.size > SOME))
    await lab.quiet()
    if (!(await lab.drained(60_000))) throw new Error(`mail is left: ${(await lab.left()).join(' ')}`)
    await lab.terminate()
    const reader = openQueueReader(lab.queueDirectory)
    try {
      return await counted(reader, lab.acknowledged.size, [...WHOLE, 'cause', 'delay'])
    } finally {
      await reader.close()
    }
  } finally {
    await lab.close()
  }
}

/** Two nodes of one queue, of which one after the other is killed and started again. */
export async function seriesOfTwoNodes(kills: number, seed: number): Promise<CountedSeries> {
  const chance = seededRandom(seed).stream('kills')
  const cluster = await NodeCluster.open({ minimal_backoff_time: '1s', maximal_backoff_time: '2s' }, {}, 2)
  try {
    const nodes = await cluster.startAll('n1', 'n2')
    for (const { load } of nodes) {
      load.pace = 50
      load.start(2, (number) => `${number % 10 === 0 ? 'defer' : 'ann'}-${number}@d${number % 2}.example`)
    }
    for (let kill = 0; kill < kills; kill++) {
      await new Promise((resolve) => setTimeout(resolve, chance() * 400))
      await killAndRestart(cluster, kill % 2 === 0 ? 'n1' : 'n2')
    }
    const some = (): boolean => nodes.reduce((sum, { load }) => sum + load.acknowledged.size, 0) > SOME
    await until('some mail is acknowledged', 60_000, () => Promise.resolve(some()))
    const { acknowledged } = await account(cluster, nodes, 90_000)
    for (const node of cluster.nodes.values()) await cluster.stop(node)
    const url = parseDatabaseUrl(cluster.server.url())
    if (url === null) throw new Error('the server has a URL')
    const reader = await openPostgresReader({ url, durability: 'primary' })
    try {
      return await counted(reader, acknowledged, [...WHOLE, 'node', 'cause', 'delay'])
    } finally {
      await reader.close()
    }
  } finally {
    await cluster.close()
  }
}

async function killAndRestart(cluster: NodeCluster, name: string): Promise<void> {
  const node: ClusterNode | undefined = cluster.nodes.get(name)
  if (node === undefined) throw new Error(`${name} was started`)
  node.process.child.kill('SIGKILL')
  await node.process.ended
  await cluster.restart(node)
}
