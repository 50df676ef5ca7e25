/** Work on the database while mail flows: a session that holds a snapshot for long, and VACUUM FULL. */
import { describe, expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { account } from '../support/nodes/account.ts'
import { NodeCluster, until, type ClusterNode } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { portion } from './portion.ts'

const reason = reasonWithoutPostgres()
const recipientOf = (number: number): string => `user@d${number % 6}.example`
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

// A shorter form has for example SNAPSHOT_SECONDS=90. A transaction is reported after a minute.
const SNAPSHOT = Number(process.env['SNAPSHOT_SECONDS'] ?? '600') * 1_000
/** Time over which a rate is measured, in ms. */
const MEASURED = 30_000

/** Two nodes whose clients submit as fast as they can. */
async function busyCluster(clients: number): Promise<{ readonly cluster: NodeCluster; readonly nodes: readonly ClusterNode[] }> {
  const cluster = await NodeCluster.open({ node_lease: '10s', default_destination_concurrency_limit: '20' })
  try {
    const nodes = await cluster.startAll('n1', 'n2')
    await cluster.shared('n1', 'n2')
    for (const { load } of nodes) load.start(clients, recipientOf)
    return { cluster, nodes }
  } catch (error) {
    await cluster.close()
    throw error
  }
}

const deliveredBy = (cluster: NodeCluster): number => cluster.far.reduce((sum, { delivered }) => sum + delivered.size, 0)

/** Deliveries of the first cluster, divided by those of the second one in the same time. */
async function ratio(first: NodeCluster, second: NodeCluster): Promise<number> {
  const [before, alsoBefore] = [deliveredBy(first), deliveredBy(second)]
  await pause(MEASURED)
  return (deliveredBy(first) - before) / (deliveredBy(second) - alsoBefore)
}

const takeovers = (nodes: readonly ClusterNode[]): number => nodes.filter(({ process }) => process.err.includes('taken over')).length

describe.skipIf(reason !== null)(`maintenance of the database${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  test.runIf(portion('database-maintenance/snapshot').isIncluded)(
    `a session that holds a snapshot for ${SNAPSHOT / 1_000} s is reported, and costs at most 30 % of the throughput`,
    async () => {
      // The cluster without the session has the same share of the machine at each moment.
      const [held, free] = [await busyCluster(4), await busyCluster(4)]
      try {
        await pause(10_000)
        const before = await ratio(held.cluster, free.cluster)
        const holder = await held.cluster.server.session()
        await holder.query('begin isolation level repeatable read')
        await holder.query('select count(*) from message')
        await pause(Math.max(0, SNAPSHOT - MEASURED))
        const during = await ratio(held.cluster, free.cluster)
        const logs = () => held.nodes.map(({ process }) => process.err).join('')
        await until('reported', 60_000, () => logs().includes('a transaction is open for'))
        const [dead] = await held.cluster.server.query(`select n_dead_tup as n from pg_stat_user_tables where relname = 'recipient'`)
        await holder.end()
        await until('reported as ended', 60_000, () => logs().includes('has ended: dead rows can be removed'))
        await pause(5_000)
        const after = await ratio(held.cluster, free.cluster)
        printFigures('snapshot, throughput divided by that of a cluster without it', {
          before,
          during,
          after,
          'dead recipients at its end': Number(dead?.['n']),
        })
        expect(during / before).toBeGreaterThan(0.7)
        expect(after / before).toBeGreaterThan(0.7)
        for (const { cluster, nodes } of [held, free])
          expect(await account(cluster, nodes, 120_000)).toMatchObject({ repeated: 0, refusedYetArrived: [] })
      } finally {
        await Promise.all([held.cluster.close(), free.cluster.close()])
      }
    },
  )

  test.runIf(portion('database-maintenance/vacuum').isIncluded)(
    'VACUUM FULL is answered with 451 by all nodes, and mail goes on after it',
    async () => {
      const { cluster, nodes } = await busyCluster(8)
      try {
        await pause(5_000)
        // VACUUM FULL of a large table holds this lock for as long.
        const locker = await cluster.server.session()
        await locker.query('begin')
        await locker.query('lock table message, recipient in access exclusive mode')
        const begun = performance.now()
        const refused = () => nodes.every(({ load }) => load.refusals.some((reply) => reply.startsWith('451')))
        await until('refused by all', 30_000, refused)
        const refusedAfter = performance.now() - begun
        await pause(20_000)
        await locker.query('commit')
        const before = deliveredBy(cluster)
        const ended = performance.now()
        await until('delivered again', 30_000, () => deliveredBy(cluster) > before + 20)
        const deliveredAfter = performance.now() - ended
        for (const table of ['message', 'recipient', 'arrival', 'history']) await locker.query(`vacuum full ${table}`)
        await locker.end()
        await pause(5_000)
        const accounted = await account(cluster, nodes, 120_000)
        printFigures('VACUUM FULL', {
          'ms to 451 by all nodes': Math.round(refusedAfter),
          'ms to deliveries': Math.round(deliveredAfter),
          'acknowledged messages': accounted.acknowledged,
        })
        expect(refusedAfter).toBeLessThan(15_000)
        expect({ ...accounted, acknowledged: 0, takeovers: takeovers(nodes) }).toEqual({
          acknowledged: 0,
          repeated: 0,
          refusedYetArrived: [],
          takeovers: 0,
        })
      } finally {
        await cluster.close()
      }
    },
  )
})
