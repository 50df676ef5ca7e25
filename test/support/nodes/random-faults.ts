/**
 * Three daemons on one queue in PostgreSQL, under load, with random faults of nodes and of the database. The mail is accounted for at
 * the end: acknowledged mail is delivered or returned, and what arrived twice was in flight at a fault.
 */
import { seededRandom } from '../../../src/system/random.ts'
import { until, NodeCluster, type ClusterNode } from '../node-cluster.ts'
import { account, type Account } from './account.ts'
import { readWatch, watchLeases } from './lease-watch.ts'

const DESTINATIONS = 6
/** Concurrency limit of each destination, which bounds the deliveries that a fault can repeat. */
const LIMIT = 5
const LEASE = 3_000
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

interface Stage {
  readonly cluster: NodeCluster
  readonly node: ClusterNode
  /** Length of the fault, in ms. */
  readonly wait: number
}

type Fault = (stage: Stage) => Promise<void>

const NODE_FAULTS: Readonly<Record<string, Fault>> = {
  'node killed': async ({ cluster, node, wait }) => {
    node.process.child.kill('SIGKILL')
    await node.process.ended
    await pause(wait)
    await cluster.restart(node)
  },
  'node stopped': async ({ node, wait }) => {
    node.process.child.kill('SIGSTOP')
    await pause(wait * 2)
    node.process.child.kill('SIGCONT')
  },
  'node cut off, its packets late': async ({ node, wait }) => {
    node.proxy.stall()
    await pause(wait * 3)
    node.proxy.deliver()
  },
  'node cut off, its connections closed, its packets late': async ({ node, wait }) => {
    node.proxy.stall()
    await pause(wait)
    node.proxy.cut()
    await pause(wait)
    node.proxy.deliver()
  },
}

const DATABASE_FAULTS: Readonly<Record<string, Fault>> = {
  'sessions ended': async ({ cluster }) => {
    await cluster.server.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'deferd %'`)
  },
  'server process killed': async ({ cluster, wait }) => {
    const [row] = await cluster.server.query(`select pid from pg_stat_activity where application_name like 'deferd % w' limit 1`)
    if (row !== undefined) process.kill(Number(row['pid']), 'SIGKILL')
    await pause(wait)
    await until('recovered', 30_000, () => cluster.server.answers())
  },
  'server crashed': async ({ cluster, wait }) => {
    await cluster.server.stop('kill')
    await pause(wait)
    await cluster.server.start()
  },
  'server shut down at once': async ({ cluster, wait }) => {
    await cluster.server.stop('immediate')
    await pause(wait)
    await cluster.server.start()
  },
  'server frozen': async ({ cluster, wait }) => {
    cluster.server.freeze()
    await pause(wait)
    cluster.server.thaw()
  },
}

export interface FaultsTally extends Account {
  readonly faults: Readonly<Record<string, number>>
  /** Bound of `repeated`: deliveries that the limits allow at each fault. */
  readonly inFlight: number
  readonly notices: number
  /** Refused recipients with more than one notice. */
  readonly noticedTwice: readonly string[]
  readonly removedNodes: number
  readonly foreignOutcomes: number
  /** MAIL commands of a node between its removal and its next joining. */
  readonly begunAfterRemoval: number
  /** Number of those on connections that were opened after the removal. */
  readonly connectedAfterRemoval: number
  /** Leases and messages at the end. */
  readonly left: number
}

const recipientOf = (number: number): string => `${number % 7 === 0 ? 'refuse' : 'user'}-${number}@d${number % DESTINATIONS}.example`

/** Runs the load with so many faults, and resolves when all acknowledged mail has arrived. Rejects when some has not after 3 minutes. */
export async function randomFaults(options: {
  readonly nodeFaults: number
  readonly databaseFaults: number
  readonly seed: number
}): Promise<FaultsTally> {
  const cluster = await NodeCluster.open({
    node_lease: `${LEASE}ms`,
    default_destination_concurrency_limit: String(LIMIT),
    minimal_backoff_time: '5s',
  })
  try {
    for (const far of cluster.far) far.delay = 30
    const nodes = await cluster.startAll('n1', 'n2', 'n3')
    await cluster.shared('n1', 'n2', 'n3')
    await watchLeases(cluster.server)
    for (const { load } of nodes) {
      load.pace = 40
      load.start(2, recipientOf)
    }
    const faults = await makeFaults(cluster, options)
    const accounted = await account(cluster, nodes, 180_000)
    await until('empty', 60_000, async () => (await cluster.says('queue', 'list', '--count')).trim() === '0')
    return { ...accounted, ...(await tally(cluster, faults)) }
  } finally {
    await cluster.close()
  }
}

async function makeFaults(
  cluster: NodeCluster,
  { nodeFaults, databaseFaults, seed }: { readonly nodeFaults: number; readonly databaseFaults: number; readonly seed: number },
): Promise<Readonly<Record<string, number>>> {
  const chance = seededRandom(seed).stream('faults')
  const pick = <T>(list: readonly T[]): T => list[Math.floor(list.length * chance())]!
  const counts: Record<string, number> = {}
  let [ofNodes, ofDatabase] = [nodeFaults, databaseFaults]
  while (ofNodes + ofDatabase > 0) {
    await pause(300 + 1_500 * chance())
    const isOfNode = chance() < ofNodes / (ofNodes + ofDatabase)
    if (isOfNode) ofNodes--
    else ofDatabase--
    const [name, fault] = pick(Object.entries(isOfNode ? NODE_FAULTS : DATABASE_FAULTS))
    counts[name] = (counts[name] ?? 0) + 1
    await fault({ cluster, node: pick([...cluster.nodes.values()]), wait: LEASE * chance() })
  }
  return counts
}

async function tally(cluster: NodeCluster, faults: Readonly<Record<string, number>>): Promise<Omit<FaultsTally, keyof Account>> {
  const { foreignOutcomes, absences, removed } = await readWatch(cluster.server)
  const begun = Map.groupBy(
    cluster.far.flatMap((far) => far.begun),
    ({ client }) => client,
  )
  const late = absences.flatMap(({ name, from, to }) => {
    const isLate = (at: number): boolean => at > from && at < to
    return (begun.get(`${name}.example`) ?? []).filter(({ at }) => isLate(at)).map(({ connectedAt }) => isLate(connectedAt))
  })
  const about = [...cluster.home.noticedAbout]
  const [left] = await cluster.server.query(`select (select count(*) from recipient) + (select count(*) from message) as left`)
  const sum = Object.entries(faults).reduce((all, [name, count]) => all + (name in NODE_FAULTS ? count : 0), 0)
  return {
    faults,
    inFlight: sum * DESTINATIONS * LIMIT,
    notices: about.length,
    noticedTwice: about.flatMap(([address, ids]) => (ids.size > 1 ? [address] : [])),
    removedNodes: removed,
    foreignOutcomes,
    connectedAfterRemoval: late.filter(Boolean).length,
    begunAfterRemoval: late.length,
    left: Number(left?.['left']),
  }
}
