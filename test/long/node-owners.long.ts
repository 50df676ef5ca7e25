/** Owners of destinations that are killed, stopped, cut off from the database, or without it for a while. */
import { describe, expect, test } from 'vitest'
import { countFrom, printFigures } from '../support/figures.ts'
import { account } from '../support/nodes/account.ts'
import { absentDatabase } from '../support/nodes/absent-database.ts'
import { bouncedByTwo } from '../support/nodes/bounced-by-two.ts'
import { intervalsOfProbes } from '../support/nodes/dead-destination.ts'
import { killedAtNotice } from '../support/nodes/killed-at-notice.ts'
import { readWatch } from '../support/nodes/lease-watch.ts'
import { pausesAtKill } from '../support/nodes/pauses-at-kill.ts'
import { onThreeNodes, removalTimes } from '../support/nodes/removal-times.ts'
import { until } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'
import { portion } from './portion.ts'

const reason = reasonWithoutPostgres()
const DESTINATIONS = 6
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

const why = reason === null ? '' : ` (skipped: ${reason})`

describe.runIf(reason === null && portion('node-owners/faults').isIncluded)(`owners of destinations${why}`, () => {
  const LIMIT_OF_TAKEOVER = 7_000

  test('when a node is killed, its destinations get mail again within 7 s, and those of the others wait for nothing', async () => {
    const { own, others, repeated, refusedYetArrived } = await pausesAtKill()
    printFigures('a node killed, longest pause of each destination in ms', { 'of the killed node': own, 'of others': others })
    expect(own.length).toBeGreaterThan(0)
    // A delivery takes 300 ms.
    expect(Math.max(...own)).toBeLessThan(LIMIT_OF_TAKEOVER + 500)
    expect(Math.max(...others)).toBeLessThan(2_000)
    expect(repeated).toBeLessThanOrEqual(5 * DESTINATIONS)
    expect(refusedYetArrived).toEqual([])
  })

  test('a killed, a frozen and a cut off node are taken over within 7 s, and one that ends in order within 2 s', async () => {
    const { killed, frozen, cut, left, refusedYetArrived, foreignOutcomes } = await removalTimes()
    printFigures('ms to a takeover', { killed, frozen, cut, left })
    expect(Math.max(killed, frozen, cut)).toBeLessThan(LIMIT_OF_TAKEOVER)
    expect(left).toBeLessThan(2_000)
    expect({ refusedYetArrived, foreignOutcomes }).toEqual({ refusedYetArrived: [], foreignOutcomes: 0 })
  })

  test('a node that was stopped for 60 s begins no delivery of its former mail, changes no outcome, and joins again within 5 s', () =>
    onThreeNodes(async (cluster, [first, second, third]) => {
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
    onThreeNodes(async (cluster, [first, second, third]) => {
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
    const { accepted, acceptedByAll, ...rest } = await absentDatabase(60)
    printFigures('ms from the return of the database to 250', { 'by the first node': accepted, 'by all': acceptedByAll })
    expect(acceptedByAll).toBeLessThan(2_000)
    expect(rest).toEqual({ repeated: 0, takeovers: 0, postponed: 0, refusedYetArrived: [] })
  })

  test('a dead destination with 10,000 messages is probed once per interval, which goes on doubling when its owner is killed', async () => {
    const intervals = await intervalsOfProbes(10_000)
    printFigures('probes of a dead destination', { 'ms between them': intervals })
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
})

const KILLS = countFrom('NOTICE_KILLS', 100)

test.runIf(reason === null && portion('node-owners/notices').isIncluded)(
  `a node is killed ${KILLS} times between an outcome and its notice: each notice is sent once${why}`,
  async () => {
    const { uncommitted, notices, repeatedNotices } = await killedAtNotice(KILLS, 11)
    printFigures('kills between outcome and notice', { kills: notices.length, 'before the commit of the notice': uncommitted })
    expect(notices).toEqual(Array.from({ length: KILLS }, () => 1))
    expect(repeatedNotices).toBe(0)
  },
)
