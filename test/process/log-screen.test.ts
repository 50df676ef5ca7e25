/** Warnings of real daemons on their page and in their API: of one process, and of two nodes, one of which stops to answer. */
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { LogPageJson } from '../../src/resources/log-json.ts'
import { NodeCluster, until, type ClusterNode } from '../support/node-cluster.ts'
import { PageClient, textOf } from '../support/page-client.ts'
import { DEAD_HOST, PageDaemon } from '../support/page-daemon.ts'
import { portBelowEphemeral } from '../support/ports.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

/** A loaded machine gets more than the seconds that this takes. */
const LIMIT = 100_000

const lines = async (page: PageClient, query = ''): Promise<LogPageJson> => (await page.json(`log${query}`)) as LogPageJson

test('a destination that dies is in the log of the page', { timeout: 2 * LIMIT }, async () => {
  const daemon = await PageDaemon.start({ relayhost: DEAD_HOST, default_destination_concurrency_failed_cohort_limit: 1 })
  try {
    const page = await PageClient.logIn(daemon.url, daemon.queueDirectory, 'viewer')
    await daemon.send(Array.from({ length: 12 }, (_, i) => ({ from: 'app@us.example', to: `user${i}@far.example` })))
    await until('dead', LIMIT, async () => (await lines(page, '?event=died')).records.length > 0)
    const { records, nodes } = await lines(page, '?event=died')
    const { destination } = records[0] ?? {}
    expect(records[0]).toMatchObject({
      level: 'warn',
      program: 'qmgr',
      node: null,
      text: expect.stringContaining('Connection refused') as string,
    })
    expect(nodes).toMatchObject([{ name: null }])
    const screen = textOf(await page.open(`log?destination=${encodeURIComponent(destination ?? '')}`))
    expect(screen).toContain('Connection refused')
    expect(screen).toMatch(/[1-9]\d* warnings? since/)
  } finally {
    await daemon.close()
  }
})

const reason = reasonWithoutPostgres()

describe.skipIf(reason !== null)(`two nodes${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  test('the page of one has the lines of both, and names the one that does not answer', { timeout: 4 * LIMIT }, async () => {
    const cluster = await NodeCluster.open({ node_lease: '60s' })
    try {
      const port = await portBelowEphemeral()
      const [other] = await Promise.all([
        cluster.start('n1', { bounce_queue_lifetime: '3d', maximal_queue_lifetime: '2d' }),
        cluster.start('n2', { admin_listen: `127.0.0.1:${port}`, bounce_queue_lifetime: '3d', maximal_queue_lifetime: '2d' }),
      ])
      await cluster.shared('n1', 'n2')
      const page = await PageClient.logIn(`http://127.0.0.1:${port}/`, join(nodeFolder(cluster, 'n2'), 'queue'))
      const asked = `?text=${encodeURIComponent('*bounce_queue_lifetime*')}`
      await until('both', LIMIT, async () => (await lines(page, asked)).records.length === 2)
      expect((await lines(page, asked)).records.map(({ node }) => node)).toEqual(expect.arrayContaining(['n1', 'n2']))
      expect(textOf(await page.open(`log${asked}`))).toContain('2 warnings since')
      expect((await lines(page, `${asked}&node=n1`)).records).toHaveLength(1)

      other.process.child.kill('SIGSTOP')
      const { nodes, records } = await lines(page, asked)
      expect(nodes).toContainEqual({ name: 'n1', since: null })
      expect(records.map(({ node }) => node)).toEqual(['n2'])
      expect(textOf(await page.open('log'))).toContain('Lines are missing, because a node does not answer: n1.')
      other.process.child.kill('SIGCONT')
    } finally {
      await cluster.close()
    }
  })
})

const nodeFolder = (cluster: NodeCluster, name: string): string => (cluster.nodes.get(name) as ClusterNode).folder.path
