/** Two nodes on PostgreSQL: the page of each shows the same queue, and acts on mail and destinations of the other. */
import { describe, expect, test } from 'vitest'
import { printFigures } from '../support/figures.ts'
import { textOf, type PageScreen } from '../support/page-client.ts'
import { NodeCluster, until } from '../support/node-cluster.ts'
import { startWithPage, type PageNode } from '../support/nodes/page-node.ts'
import { reasonWithoutPostgres } from '../support/postgres-server.ts'

const reason = reasonWithoutPostgres()

/** So many that each node schedules some of them: the names, and so the shards, differ in each run. */
const DESTINATIONS = 16
const MESSAGES = 192

const DEFERRED = `select count(*) as n from recipient where state = 'waiting' and attempts = 1`

interface ShownDestination {
  readonly destination: string
  readonly node: string
  readonly state: string
  readonly waiting: number
  readonly window: number
  readonly last_outcomes: readonly string[]
}

interface AuditRecord {
  readonly node: string
  readonly action: string
  readonly changed: number
}

const destinationPlace = (name: string): string => `destinations/${encodeURIComponent(name)}`

const toggledBusy = ({ far }: NodeCluster, isBusy: boolean): void => far.forEach((one) => (one.isBusy = isBusy))

/** Queue ids of the messages on all pages of the listing. */
async function listed({ page }: PageNode): Promise<readonly string[]> {
  const ids: string[] = []
  for (let screen = await page.open('messages'); ; screen = await page.follow(screen, 'Next page')) {
    ids.push(...[...screen.markup.matchAll(/href="\.\/messages\/(\w+)"/g)].map(([, id = '']) => id))
    if (!screen.markup.includes('rel="next"')) return ids
  }
}

const shownAt = async ({ page }: PageNode, name: string) => (await page.json(destinationPlace(name))) as ShownDestination

/** Carries out an operation on the messages of a filter, and returns the screen of its result. */
async function carryOut({ page }: PageNode, operation: string, filter: Readonly<Record<string, string>> = {}): Promise<PageScreen> {
  const plan = await page.open(`operations/new?${new URLSearchParams({ operation, scope: 'filter', ...filter }).toString()}`)
  return page.press(plan, /<h1>(.*?)\?<\/h1>/.exec(plan.markup)?.[1] ?? '')
}

/** Waits until the screen of an operation shows its result, or how far it is. A request waits for its end 2 s at most. */
async function ended({ page }: PageNode, { place }: PageScreen, result: string): Promise<void> {
  let text = ''
  try {
    await until(result, 30_000, async () => (text = textOf(await page.open(place))).includes(result))
  } catch (cause) {
    throw new Error(`${place} shows: ${text}`, { cause })
  }
}

/** Waits until the listing of the mail on hold has a count: the screen says that it counts when that takes longer than 100 ms. */
const counted = ({ page }: PageNode, count: string): Promise<void> =>
  until('counted', 30_000, async () => textOf(await page.open('messages?queue=hold')).includes(count))

describe.skipIf(reason !== null)(`the pages of two nodes${reason === null ? '' : ` (skipped: ${reason})`}`, () => {
  test('show the same queue, and act on mail, destinations and operations of each other', { timeout: 240_000 }, async () => {
    // A node that started long before the other has all shards, and lets 4 of 128 go in each fifth of a lease: 26 s in all.
    const cluster = await NodeCluster.open({ node_lease: '4s', minimal_backoff_time: '1h', maximal_backoff_time: '1h' }, {}, DESTINATIONS)
    try {
      toggledBusy(cluster, true)
      const [first, second] = await Promise.all([startWithPage(cluster, 'n1'), startWithPage(cluster, 'n2')])
      const one = async (text: string) => Number((await cluster.server.query(text))[0]?.['n'])
      await cluster.balanced('n1', 'n2')
      for (const { node } of [first, second]) {
        node.load.pace = 1
        node.load.start(1, (number) => `user@d${number % DESTINATIONS}.example`)
      }
      const sent = () => first.node.load.acknowledged.size + second.node.load.acknowledged.size
      await until('queued', 60_000, () => sent() >= MESSAGES)
      await Promise.all([first, second].map(({ node }) => node.load.close()))
      const all = sent()
      await until('deferred', 60_000, async () => (await one(DEFERRED)) === all)

      // Both pages list all mail, although each node numbers its own.
      const ids = await listed(first)
      expect(ids).toHaveLength(all)
      expect(await listed(second)).toEqual(ids)

      // Live figures of a destination are those of its owner, wherever they are asked for.
      const { destinations } = (await first.page.json('destinations?limit=50')) as { readonly destinations: readonly ShownDestination[] }
      const ownedBy = (name: string): string => destinations.find(({ node }) => node === name)?.destination ?? ''
      const [ofFirst, ofSecond] = [ownedBy('n1'), ownedBy('n2')]
      for (const name of [ofFirst, ofSecond]) {
        const [here, there] = await Promise.all([shownAt(first, name), shownAt(second, name)])
        // The wall clocks of two nodes differ by a millisecond.
        const times = { as_of: 0, next_due_time: 0 }
        expect({ ...here, ...times }).toEqual({ ...there, ...times })
        expect(here.last_outcomes).toHaveLength(here.waiting)
        expect(here.window).toBeGreaterThan(0)
      }

      // The page of the second node releases the mail that the first one put on hold.
      const held = await carryOut(first, 'hold')
      await ended(first, held, `${all} messages were put on hold`)
      await counted(second, `${all} messages: queue hold`)
      await ended(second, await second.page.press(await second.page.open(held.place), 'Undo'), `${all} messages were released`)
      await counted(first, '0 messages: queue hold')

      // An operation of one node, which waits for a row that another session has locked, is cancelled at the other node.
      const session = await cluster.server.session()
      const cancelled = await (async () => {
        try {
          await session.query('begin')
          await session.query('select 1 from message where id = (select id from message order by id offset 100 limit 1) for update')
          const running = await carryOut(first, 'delete')
          await ended(first, running, 'Messages moved to the trash so far: 64')
          return await second.page.press(await second.page.open(running.place), 'Cancel')
        } finally {
          await session.end()
        }
      })()
      for (const node of [first, second]) await ended(node, cancelled, 'Cancelled. 64 messages were moved to the trash before that.')
      await ended(second, await second.page.press(await second.page.open(cancelled.place), 'Undo'), '64 messages were restored.')
      expect(await listed(second)).toEqual(ids)

      // Requeued mail gets new ids, and is requeued once.
      await ended(first, await carryOut(first, 'requeue'), `${all} messages were requeued.`)
      await until('deferred again', 30_000, async () => (await one(DEFERRED)) === all)
      expect(await listed(second)).toHaveLength(all)

      // Each page suspends a destination of the other node.
      const others = [
        [first, ofSecond],
        [second, ofFirst],
      ] as const
      for (const [actor, name] of others) {
        const form = await actor.page.open(`${destinationPlace(name)}/suspend`)
        await actor.page.press(form, 'Suspend', { reason: 'maintenance', for: '2h' })
        await until('suspended', 30_000, async () => textOf(await actor.page.open(destinationPlace(name))).includes('Suspended by'))
      }
      const suspended = (await shownAt(first, ofFirst)).waiting + (await shownAt(first, ofSecond)).waiting

      // A flush from one page delivers the mail of both nodes, except for that of the suspended destinations.
      toggledBusy(cluster, false)
      await ended(first, await carryOut(first, 'flush'), `${all} messages were made due`)
      await until('delivered', 30_000, () => cluster.delivered().size === all - suspended)
      for (const { page } of [first, second])
        await until('shown', 30_000, async () => textOf(await page.open('messages')).includes(`Messages ${suspended} messages`))

      for (const [actor, name] of others) {
        await actor.page.press(await actor.page.open(`${destinationPlace(name)}/resume`), 'Resume')
      }
      await until('delivered', 30_000, () => cluster.delivered().size === all)

      for (const { page } of [first, second]) {
        const { records } = (await page.json('audit')) as { readonly records: readonly AuditRecord[] }
        expect(records.map(({ node, action, changed }) => `${node} ${action} ${changed}`)).toEqual([
          'n2 resume 1',
          'n1 resume 1',
          `n1 flush ${all}`,
          'n2 suspend 1',
          'n1 suspend 1',
          `n1 requeue ${all}`,
          'n2 restore 64',
          'n1 delete 64',
          `n2 release ${all}`,
          `n1 hold ${all}`,
        ])
      }
    } finally {
      await cluster.close()
    }
  })

  test('name the destinations at which no address is listed, whichever node delivers to them', { timeout: 240_000 }, async () => {
    const cluster = await NodeCluster.open({ node_lease: '4s', suppression: 'yes' })
    try {
      const both = await Promise.all([startWithPage(cluster, 'n1'), startWithPage(cluster, 'n2')])
      await cluster.balanced('n1', 'n2')
      const { load } = both[0].node
      // A failure is that of the destination from 20 recipients on.
      load.start(2, (number) => {
        if (load.acknowledged.size >= 30 * cluster.destinations.length) load.pace = null
        return `refuse-${number}@d${number % cluster.destinations.length}.example`
      })
      for (const { page } of both)
        for (const name of cluster.destinations) {
          await until('named', 60_000, async () => textOf(await page.open('suppressions')).includes(`No address at ${name} is listed`))
        }
      for (const { page } of both)
        await until('named by Now', 30_000, async () => textOf(await page.open('')).includes('is listed, because'))
    } finally {
      await cluster.close()
    }
  })

  test(
    'go on after their node was paused, taken over and joined the queue again, whatever was asked meanwhile',
    { timeout: 240_000 },
    async () => {
      const cluster = await NodeCluster.open({ node_lease: '2s' })
      try {
        const [paused] = await Promise.all([startWithPage(cluster, 'n1'), startWithPage(cluster, 'n2')])
        await until('joined', 60_000, async () => (await cluster.list()).length === 2)
        const { child } = paused.node.process
        child.kill('SIGSTOP')
        const asked = Array.from({ length: 8 }, () => paused.page.open('nodes').catch((error: unknown) => String(error)))
        await cluster.shared('n2')
        child.kill('SIGCONT')
        await Promise.all(asked)
        await until('joined again', 60_000, async () => textOf(await paused.page.open('nodes')).includes('2 nodes share the queue'))
        expect(child.exitCode).toBe(null)
      } finally {
        await cluster.close()
      }
    },
  )

  test('name a node that was killed and the one that has its mail, and so does the status', { timeout: 240_000 }, async () => {
    // The default lease.
    const cluster = await NodeCluster.open({ node_lease: '5s' })
    try {
      const [killed, other] = await Promise.all([startWithPage(cluster, 'n1'), startWithPage(cluster, 'n2')])
      await until('joined', 60_000, async () => (await cluster.list()).length === 2)
      killed.node.process.child.kill('SIGKILL')
      const since = performance.now()
      // Promised: 10 s.
      await until('named by the page', 100_000, async () => textOf(await other.page.open('')).includes('1 node lost: n1, taken over by n2'))
      printFigures('a node is killed', { 'seconds until the page of the other names it': (performance.now() - since) / 1_000 })
      const { out } = await cluster.run(['status'], {}, other.node.folder).ended
      expect(out).toMatch(/n1 is lost[^]*n2 has taken/)
    } finally {
      await cluster.close()
    }
  })
})
