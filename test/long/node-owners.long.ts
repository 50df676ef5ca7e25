/** Owners of destinations that are killed, stopped, cut off from the database, or without it for a while. */
import { describe, expect, test } from 'vitest'
import { account } from '../support/nodes/account.ts'
import { bouncedByTwo } from '../support/nodes/bounced-by-two.ts'
import { intervalsOfProbes } from '../support/nodes/dead-destination.ts'
import { killedAtNotice } from '../support/nodes/killed-at-notice.ts'
import { readWatch, watchLeases } from '../support/nodes/lease-watch.ts'
import { NodeCluster, until, type ClusterNode } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()
const DESTINATIONS = 6
const recipientOf = (number: number): string => `user@d${number % DESTINATIONS}.example`
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

/** Three nodes with the default lease of 5 s and deliveries of 300 ms, under load. */
async function onCluster(
  run: (cluster: NodeCluster, nodes: readonly [ClusterNode, ClusterNode, ClusterNode]) => Promise<void>,
): Promise<void> {
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
    await run(cluster, [first, second, third])
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

describe.skipIf(reason !== null)(`owners of destinations${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  const LIMIT_OF_TAKEOVER = 7_000

  test('a killed, a frozen and a cut off node are taken over within 7 s, and one that ends in order within 2 s', () =>
    onCluster(async (cluster, [first, second, third]) => {
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
      console.log(`taken over after ${[killed, frozen, cut].map((ms) => ms.toFixed(0)).join(', ')} ms; left after ${left.toFixed(0)} ms`)
      expect(Math.max(killed, frozen, cut)).toBeLessThan(LIMIT_OF_TAKEOVER)
      expect(left).toBeLessThan(2_000)
      await cluster.shared('n2')
      const { refusedYetArrived } = await account(cluster, [first, second, third], 60_000)
      expect(refusedYetArrived).toEqual([])
      expect(await readWatch(cluster.server)).toMatchObject({ foreignOutcomes: 0 })
    }))

  test('a node that was stopped for 60 s begins no delivery of its former mail, changes no outcome, and joins again within 5 s', () =>
    onCluster(async (cluster, [first, second, third]) => {
      const [before] = await cluster.server.query(`select id from node where name = 'n2'`)
      second.process.child.kill('SIGSTOP')
      second.load.port = third.port
      await pause(60_000)
      const history = await cluster.server.query(`select seq, message, node, record from history order by seq`)
      const continued = Date.now()
      second.process.child.kill('SIGCONT')
      const joined = `select id, extract(epoch from joined_at) * 1000 as at from node where name = 'n2'`
      await until('joined again', 30_000, async () => (await cluster.server.query(joined)).length === 1)
      const [row] = await cluster.server.query(joined)
      expect(Number(row?.['id'])).toBeGreaterThan(Number(before?.['id']))
      expect(Number(row?.['at']) - continued).toBeLessThan(5_000)
      await cluster.shared('n1', 'n2', 'n3')
      const at = Number(row?.['at'])
      const sent = cluster.far.flatMap(({ begun }) =>
        begun.filter((mail) => mail.client === 'n2.example' && mail.at > continued && mail.at < at),
      )
      expect(sent).toEqual([])
      const newest = Number(history.at(-1)?.['seq'])
      expect(await cluster.server.query(`select seq, message, node, record from history where seq <= ${newest} order by seq`)).toEqual(
        history,
      )
      const { repeated, refusedYetArrived } = await account(cluster, [first, second, third], 60_000)
      expect(repeated).toBeLessThanOrEqual(5 * DESTINATIONS)
      expect(refusedYetArrived).toEqual([])
      expect(await readWatch(cluster.server)).toMatchObject({ foreignOutcomes: 0 })
    }))

  test('a node whose session stalls for 20 s changes nothing with the packets that arrive late', () =>
    onCluster(async (cluster, [first, second, third]) => {
      second.proxy.stall()
      await pause(20_000)
      second.proxy.deliver()
      await cluster.shared('n1', 'n2', 'n3')
      const { repeated, refusedYetArrived } = await account(cluster, [first, second, third], 60_000)
      expect(repeated).toBeLessThanOrEqual(5 * DESTINATIONS)
      expect(refusedYetArrived).toEqual([])
      expect(await readWatch(cluster.server)).toMatchObject({ foreignOutcomes: 0, removed: 1 })
    }))

  test('a database that is away for 60 s during 100 deliveries causes neither a repeated delivery nor a takeover', async () => {
    const cluster = await NodeCluster.open({ node_lease: '5s', initial_destination_concurrency: '20' })
    try {
      for (const far of cluster.far) far.delay = 3_000
      const nodes = await cluster.startAll('n1', 'n2', 'n3')
      await cluster.shared('n1', 'n2', 'n3')
      for (const { load } of nodes) {
        load.pace = 10
        load.start(2, recipientOf)
      }
      await until('100 in delivery', 60_000, () => cluster.far.reduce((sum, { inTransfer }) => sum + inTransfer, 0) >= 100)
      await cluster.server.stop('immediate')
      const refusals = () => nodes.map(({ load }) => load.refusals.filter((reply) => reply.startsWith('451 4.3.0')).length)
      await until('refused by all', 30_000, () => refusals().every((count) => count > 0))
      await pause(60_000)
      const acknowledged = nodes.reduce((sum, { load }) => sum + load.acknowledged.size, 0)
      await cluster.server.start()
      const back = performance.now()
      await until('accepting', 30_000, () => nodes.reduce((sum, { load }) => sum + load.acknowledged.size, 0) > acknowledged)
      const waited = performance.now() - back
      console.log(`first 250 ${waited.toFixed(0)} ms after the return of the database`)
      expect(waited).toBeLessThan(2_000)
      const { repeated, refusedYetArrived } = await account(cluster, nodes, 120_000)
      expect({ repeated, refusedYetArrived }).toEqual({ repeated: 0, refusedYetArrived: [] })
      for (const { process } of nodes) expect(process.err).not.toContain('taken over')
      await until('empty', 60_000, async () => (await cluster.says('queue', 'list', '--count')).trim() === '0')
    } finally {
      await cluster.close()
    }
  })

  test('a dead destination with 10,000 messages is probed once per interval, which goes on doubling when its owner is killed', async () => {
    const intervals = await intervalsOfProbes(10_000)
    console.log(`intervals between probes: ${intervals.join(', ')} ms`)
    intervals.forEach((interval, n) => {
      expect(interval).toBeGreaterThan(4_000 * 2 ** n * 0.95)
      expect(interval).toBeLessThan(4_000 * 2 ** n + 3_000)
    })
  })

  test('200 messages that two nodes bounce at once cause one notice for each recipient, and leave the queue', async () => {
    const { refused, notices, repeatedNotices } = await bouncedByTwo(200)
    expect(notices).toEqual(new Map(refused.map((address) => [address, 1])))
    expect(repeatedNotices).toBe(0)
  })

  const { NOTICE_KILLS = '100', NOTICE_SEED = '11' } = process.env

  test(`a node is killed ${NOTICE_KILLS} times between an outcome and its notice: each notice is sent once`, async () => {
    const { uncommitted, notices, repeatedNotices } = await killedAtNotice(Number(NOTICE_KILLS), Number(NOTICE_SEED))
    console.log(`killed ${notices.length} times, ${uncommitted} times before the commit of the notice`)
    expect(notices).toEqual(Array.from({ length: Number(NOTICE_KILLS) }, () => 1))
    expect(repeatedNotices).toBe(0)
  })
})
