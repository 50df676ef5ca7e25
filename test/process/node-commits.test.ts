/** Commits of a node whose answers are lost, and commits that wait for a standby, with real processes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { account } from '../support/nodes/account.ts'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { reasonWithoutPostgres, startPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()
const LOSSES = 6
const recipientOf = (number: number): string => `user@d${number % 6}.example`
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))

describe.skipIf(reason !== null)(
  `commits of a node${reason === null ? '' : ` (skipped: ${reason})`}`,
  { timeout: 120_000, concurrent: true },
  () => {
    test('a message is answered 250 exactly when it is queued, also when the answer to its commit is lost', async () => {
      const cluster = await NodeCluster.open({ node_lease: '10s' })
      try {
        const [node] = await cluster.startAll('n1')
        if (node === undefined) throw new Error('a node was started')
        await cluster.shared('n1')
        node.load.pace = 5
        node.load.start(4, recipientOf)
        for (let n = 0; n < LOSSES; n++) {
          await pause(100)
          const before = node.load.acknowledged.size
          node.proxy.dropAnswers('the commit')
          await pause(50)
          node.proxy.cut()
          await until('accepting', 30_000, () => node.load.acknowledged.size > before + 10)
        }
        const { acknowledged, ...rest } = await account(cluster, [node])
        expect(acknowledged).toBeGreaterThan(10 * LOSSES)
        expect(rest).toEqual({ repeated: 0, refusedYetArrived: [] })
        // A machine that takes more than 2 s for a new session refuses mail meanwhile.
        expect(node.load.refusals.filter((reply) => !reply.startsWith('451 4.3.0 '))).toEqual([])
        expect(node.process.err).not.toContain('was taken over')
      } finally {
        await cluster.close()
      }
    })

    test('probes name the standby that is missing, and are good again when it is back', async () => {
      const cluster = await NodeCluster.open({ node_lease: '10s' })
      const primary = cluster.server
      await primary.stop()
      const standby = await startPostgres({ copyOf: primary, follows: primary })
      try {
        await primary.start({ synchronous_standby_names: 'standby' })
        const node = await cluster.start('n1', { queue_database_durability: 'replicated' })
        await cluster.shared('n1')
        const probe = async (path: string) =>
          (await (await fetch(`http://127.0.0.1:${node.http}/${path}`)).json()) as Readonly<Record<string, unknown>>
        expect(await probe('readyz')).toMatchObject({ ready: true, standby: 'ok' })
        await standby.stop()
        await until('standby missed', 60_000, async () => String((await probe('healthz'))['standby']).startsWith('no synchronous standby'))
        expect(await probe('readyz')).toMatchObject({ ready: false })
        await standby.start()
        await until('ready again', 60_000, async () => (await probe('readyz'))['ready'] === true)
      } finally {
        await cluster.close()
        await standby.remove()
      }
    })

    test('a message is answered 250 only when the standby has it, and is there after a failover', async () => {
      const cluster = await NodeCluster.open({ node_lease: '10s' })
      const primary = cluster.server
      await primary.stop()
      const standby = await startPostgres({ copyOf: primary, follows: primary })
      try {
        await primary.start({ synchronous_standby_names: 'standby' })
        const both = `postgresql://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/postgres`
        const node = await cluster.start('n1', { queue_database: both })
        await cluster.shared('n1')
        node.load.pace = 5
        node.load.start(2, recipientOf)
        await until('accepting', 30_000, () => node.load.acknowledged.size > 10)

        standby.freeze()
        const waiting = `pg_stat_activity where wait_event = 'SyncRep' and application_name like 'deferd % w'`
        const count = async (what: string) => Number((await primary.query(`select count(*) as n from ${what}`))[0]?.['n'])
        let acknowledged = 0
        await until('waiting for the standby', 30_000, async () => {
          // An answer that the standby gave before may be under way.
          const before = node.load.acknowledged.size
          await sleep(500)
          acknowledged = node.load.acknowledged.size
          return acknowledged === before && (await count(waiting)) === 1
        })
        await primary.query(`select pg_cancel_backend(pid) from ${waiting}`)
        // The next session waits for the standby too.
        await until('waiting again', 30_000, async () => (await count(`${waiting} and query like '%session + 1%'`)) === 1)
        expect(node.load.acknowledged.size).toBe(acknowledged)
        standby.thaw()
        await until('accepting again', 30_000, () => node.load.acknowledged.size > acknowledged + 10)
        // The message in doubt is not refused; that of the other client may be, when it has waited for the session longer than 2 s.
        expect(node.load.refused.size).toBeLessThan(2)

        await primary.stop('kill')
        await standby.promote()
        const before = node.load.acknowledged.size
        await until('accepting at the former standby', 60_000, () => node.load.acknowledged.size > before + 10)
        const { repeated, refusedYetArrived } = await account(cluster, [node], 60_000)
        expect({ repeated, refusedYetArrived }).toEqual({ repeated: 0, refusedYetArrived: [] })
      } finally {
        await cluster.close()
        await standby.remove()
      }
    })
  },
)
