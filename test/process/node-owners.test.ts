/** Mail of one message at the owners of two destinations, and an operation on all mail while several nodes deliver it. */
import { describe, expect, test } from 'vitest'
import { bouncedByTwo } from '../support/nodes/bounced-by-two.ts'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()
const DESTINATIONS = 6
const MESSAGES = 40

describe.skipIf(reason !== null)(
  `mail of several owners${reason === null ? '' : ` (skipped: ${reason})`}`,
  { timeout: 120_000, concurrent: true },
  () => {
    test('a message that two nodes bounce at once causes one notice for each recipient, and leaves the queue', async () => {
      const { refused, notices, repeatedNotices } = await bouncedByTwo(MESSAGES)
      expect(notices).toEqual(new Map(refused.map((address) => [address, 1])))
      expect(repeatedNotices).toBe(0)
    })

    test('the deletion of all mail while it flows: what waits stops at every node, and each message is delivered or deleted', async () => {
      const cluster = await NodeCluster.open({ node_lease: '10s', minimal_backoff_time: '60s' })
      try {
        const nodes = await cluster.startAll('n1', 'n2')
        await cluster.shared('n1', 'n2')
        for (const far of cluster.far) far.delay = 100
        for (const { load } of nodes) {
          load.pace = 20
          // The remote server defers every second message, so that it waits.
          load.start(2, (number) => `${number % 2 === 0 ? 'defer' : 'user'}-${number}@d${number % DESTINATIONS}.example`)
        }
        const waiting = async () =>
          Number((await cluster.server.query(`select count(*) as n from recipient where state = 'waiting'`))[0]?.['n'])
        await until('waiting', 60_000, async () => (await waiting()) >= 50)
        const { changed } = JSON.parse(await cluster.says('queue', 'delete', '--all', '--json')) as { changed: number }
        await Promise.all(nodes.map(({ load }) => load.close()))
        // Mail in rows that the deletion had locked is claimed a second later, and then deferred for the first time.
        const busy = `select 1 from recipient where leased_by is not null or (state = 'waiting' and attempts = 0)`
        await until('at rest', 30_000, async () => (await cluster.server.query(busy)).length === 0)
        await cluster.says('queue', 'flush', '--all')
        await until('delivered', 30_000, async () => (await cluster.says('queue', 'list', '--count')).trim() === '0')

        const trash = (await cluster.says('queue', 'list', '--queue', 'trash', '--json')).split('\n').filter((line) => line !== '')
        const deleted = new Set(trash.map((line) => (JSON.parse(line) as { queue_id: string }).queue_id))
        const numbers = new Map(nodes.flatMap(({ load }) => [...load.acknowledged]).map(([number, queueId]) => [queueId, number]))
        const delivered = cluster.delivered()
        const fates = [...numbers].map(([queueId, number]) => [deleted.has(queueId), delivered.get(number) ?? 0])
        expect(fates.filter(([isDeleted, times]) => times !== (isDeleted === true ? 0 : 1))).toEqual([])
        expect(deleted.size).toBeGreaterThanOrEqual(50)
        // The deletion counts messages in delivery too. Those that were delivered are not in the trash.
        expect(deleted.size).toBeLessThanOrEqual(changed)
        const entry = (await cluster.says('audit', '--json')).split('\n').find((line) => line.includes('"delete"')) ?? '{}'
        expect(JSON.parse(entry)).toMatchObject({ action: 'delete', changed })
      } finally {
        await cluster.close()
      }
    })
  },
)
