/** A node whose user loses its rights in the database, and nodes that start on a database with defects, with real processes. */
import { describe, expect, test } from 'vitest'
import { account } from '../support/nodes/account.ts'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()
const recipientOf = (number: number): string => `user@d${number % 6}.example`

describe.skipIf(reason !== null)(`rights of a node${reason === null ? '' : ` (skipped: ${reason})`}`, { timeout: 120_000 }, () => {
  test('a right that is missing is 451 and /healthz 503 until it is given back, a start without it 78, and a command a sentence', async () => {
    const cluster = await NodeCluster.open({ node_lease: '10s' })
    const { server } = cluster
    try {
      await server.query('create user deferd')
      await server.query('create database mail owner deferd')
      const mine = { queue_database: server.url('mail').replace('postgres@', 'deferd@') }
      const node = await cluster.start('n1', mine)
      const health = async () => {
        const answer = await fetch(`http://127.0.0.1:${node.http}/healthz`)
        return [answer.status, await answer.text()] as const
      }
      await until('healthy', 30_000, async () => (await health())[0] === 200)
      node.load.pace = 20
      node.load.start(2, recipientOf)
      await until('accepting', 30_000, () => node.load.acknowledged.size > 10)

      await server.query('revoke all on all tables in schema public from deferd', 'mail')
      await until('refusing', 30_000, () => node.load.refusals.length > 5)
      expect(new Set(node.load.refusals.map((reply) => reply.slice(0, 3)))).toEqual(new Set(['451']))
      await until('unhealthy', 60_000, async () => (await health())[0] === 503)
      expect((await health())[1]).toMatch(/permission denied for table \w+/)
      const started = await cluster.run(['start'], { ...mine, smtpd_listen: '127.0.0.1:0' }).ended
      expect([started.code, started.err]).toEqual([
        78,
        expect.stringMatching(/^deferd: queue_database: .*permission denied for table \w+ \(42501\): give the user of the database .*\n$/),
      ])
      for (const command of [
        ['node', 'list'],
        ['queue', 'list'],
        ['queue', 'hold', '--all', '--yes'],
      ]) {
        const { code, err } = await cluster.run(command, mine).ended
        expect([code, err]).toEqual([78, expect.stringMatching(/^deferd: [^\n]*permission denied[^\n]*\n$/)])
      }
      expect(node.process.child.exitCode).toBeNull()

      await server.query('grant all on all tables in schema public to deferd', 'mail')
      const before = node.load.acknowledged.size
      await until('accepting again', 30_000, () => node.load.acknowledged.size > before + 10)
      await until('healthy again', 60_000, async () => (await health())[0] === 200)
      const { repeated, refusedYetArrived } = await account(cluster, [node])
      expect({ repeated, refusedYetArrived }).toEqual({ repeated: 0, refusedYetArrived: [] })
    } finally {
      await cluster.close()
    }
  })
})
