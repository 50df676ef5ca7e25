/** Events of several nodes: order and numbers beside slow transactions, and the node that sends a subscription. */
import { afterEach, describe, expect, test } from 'vitest'
import type { DatabaseUrl } from '../../../src/config/values/database-url.ts'
import { SHARDS } from '../../../src/store/membership/shards.ts'
import { openPostgresStore, type PostgresQueue } from '../../../src/store/postgres/open-store.ts'
import { PostgresNodeDirectory } from '../../../src/store/postgres/node-directory.ts'
import { PostgresNodeTable } from '../../../src/store/postgres/postgres-node-table.ts'
import { newProgress } from '../../../src/store/outbox/subscription.ts'
import { realClock } from '../../support/real-clock.ts'
import { event, SETTINGS } from '../../conformance/outbox.ts'
import { delivered, first, mail, ownerOf, T0 } from '../../conformance/mail.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

const LABELS = { name: 'test', program: '1.0.0', settings: '', hostname: '', draining: false }

describe.skipIf(WITHOUT_POSTGRES.skip)(`events in PostgreSQL${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()
  const closing: (() => Promise<void>)[] = []
  afterEach(async () => {
    for (const close of closing.splice(0)) await close()
  })

  const open = async (url: DatabaseUrl, name = 'test', settings = ''): Promise<PostgresQueue> => {
    const queue = await openPostgresStore({ url, durability: 'primary', labels: { ...LABELS, name, settings }, clock: realClock })
    closing.push(queue.close)
    return queue
  }
  const tableOf = (url: DatabaseUrl, { node, keys }: PostgresQueue): PostgresNodeTable => {
    const table = new PostgresNodeTable({ me: node, terms: { url, durability: 'primary' }, clock: realClock, keys })
    closing.push(() => table.close())
    return table
  }
  const subscribed = async (url: DatabaseUrl, name = 'app'): Promise<PostgresQueue> => {
    const queue = await open(url)
    await queue.store.outbox.subscribe({ name, settings: SETTINGS, at: T0, by: 'root' })
    return queue
  }
  const pulled = async ({ store }: PostgresQueue) => {
    while (await store.outbox.numberEvents());
    return ((await store.outbox.pullEvents('app', 1_000))?.events ?? []).map(({ seq, type, data }) => ({ seq, type, data }))
  }

  test('an event of a slow transaction gets a number after its commit, and delays no other', async () => {
    const url = await emptyQueue()
    const queue = await subscribed(url)
    const slow = await connectTo(url)
    closing.push(() => slow.end())
    await slow.command('begin')
    await slow.query(`insert into event (at, type, data) values (1, 'store.trouble', '[]')`)
    await queue.store.outbox.recordEvents([event('store.recovered')])
    expect(await pulled(queue)).toMatchObject([{ seq: 1, type: 'store.recovered' }])
    await slow.command('commit')
    expect(await pulled(queue)).toMatchObject([
      { seq: 1, type: 'store.recovered' },
      { seq: 2, type: 'store.trouble' },
    ])
  })

  test('while one node numbers events, another one does not wait', async () => {
    const url = await emptyQueue()
    const queue = await subscribed(url)
    const other = await connectTo(url)
    closing.push(() => other.end())
    await other.command('begin')
    await other.query('select last from outbox for update')
    await queue.store.outbox.recordEvents([event('store.recovered')])
    expect(await queue.store.outbox.numberEvents()).toBe(true)
    expect(await queue.store.outbox.pruneEvents({ before: T0, count: 0 })).toEqual({ more: false })
    await other.command('rollback')
    expect(await pulled(queue)).toHaveLength(1)
  })

  test('numbers have no gaps, and the events of a message keep their order, with three nodes at work', async () => {
    const url = await emptyQueue()
    const one = await subscribed(url)
    const nodes = [one, await open(url), await open(url)]
    await tableOf(url, one).takeShards(SHARDS)
    for (const { store } of nodes) await store.outbox.wantedTypes()
    const work = async ({ store }: PostgresQueue) => {
      for (let n = 0; n < 30; n++) {
        const entry = mail(store, { leased: true })
        const { id } = entry.message
        await store.enqueue({ ...entry, events: [event('message.accepted', [id])] })
        const events = [{ ...event('recipient.delivered', [id]), recipient: first(id) }]
        const settling = store.settle({ owner: ownerOf(store), message: id, recipients: [delivered(first(id), T0)], attempts: [], events })
        await Promise.all([settling, store.outbox.numberEvents()])
      }
    }
    await Promise.all(nodes.map(work))
    const events = await pulled(one)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, n) => n + 1))
    const byMessage = Map.groupBy(
      events.filter(({ type }) => type !== 'message.removed'),
      ({ data }) => (JSON.parse(data) as readonly unknown[])[0],
    )
    expect(byMessage.size).toBe(90)
    for (const those of byMessage.values()) expect(those.map(({ type }) => type)).toEqual(['message.accepted', 'recipient.delivered'])
    expect(events).toHaveLength(270)
  })

  test('one node sends a subscription, and the next owner of its shard continues it', async () => {
    const url = await emptyQueue()
    const [a, b] = [await subscribed(url), await open(url)]
    const [tableA, tableB] = [tableOf(url, a), tableOf(url, b)]
    expect(await a.store.outbox.subscriptions()).toEqual([])
    await tableA.beat()
    await tableA.takeShards(SHARDS)
    expect((await a.store.outbox.subscriptions()).map(({ name }) => name)).toEqual(['app'])
    expect(await b.store.outbox.subscriptions()).toEqual([])
    await a.store.outbox.recordEvents([event('store.trouble'), event('store.recovered')])
    expect(await pulled(a)).toHaveLength(2)
    const progress = newProgress(1)
    await a.store.outbox.saveProgress('app', 0, { progress, told: null, parked: [] })
    const view = await tableB.beat()
    const silent = view?.nodes.find(({ id }) => id === a.node)
    expect(await tableB.takeOver(a.node, silent?.beat ?? 0)).toMatchObject({ shards: SHARDS })
    await tableB.takeShards(SHARDS)
    expect((await b.store.outbox.subscriptions()).map(({ name }) => name)).toEqual(['app'])
    expect(await pulled(b)).toMatchObject([{ seq: 2 }])
    await expect(
      a.store.outbox.saveProgress('app', 1, { progress: { ...progress, cursor: 2 }, told: null, parked: [] }),
    ).rejects.toMatchObject({
      name: 'Fenced',
    })
  })

  test('the tables of a node that is forgotten count no more', async () => {
    const url = await emptyQueue()
    const [a, b] = [await open(url, 'mx1'), await open(url, 'mx2')]
    const table = (name: string) => ({ name, settings: SETTINGS })
    await a.store.outbox.configureSubscriptions([table('both'), table('own')], T0)
    await b.store.outbox.configureSubscriptions([table('both')], T0)
    const directory = new PostgresNodeDirectory(await connectTo(url), realClock)
    closing.push(() => directory.close())
    expect([await directory.forget('mx3'), await directory.forget('mx1')]).toEqual([false, true])
    expect((await b.reader.allSubscriptions()).map(({ name }) => name)).toEqual(['both'])
  })

  test('the tables of a node that has started again, or has another run that is not removed, are not forgotten', async () => {
    const url = await emptyQueue()
    const former = await open(url, 'mx1', 'equal')
    const running = await open(url, 'mx1', 'equal')
    await running.store.outbox.configureSubscriptions([{ name: 'own', settings: SETTINGS }], T0)
    const directory = new PostgresNodeDirectory(await connectTo(url), realClock)
    closing.push(() => directory.close())
    expect(await directory.takeOver(former.node, 0)).not.toBeNull()
    expect(await directory.forget('mx1')).toBe(false)
    expect((await running.reader.allSubscriptions()).map(({ name }) => name)).toEqual(['own'])
    expect(await directory.takeOver(running.node, 0)).not.toBeNull()
    expect(await directory.forget('mx1')).toBe(true)
  })

  test('a node learns of a subscription that another one has added', async () => {
    const url = await emptyQueue()
    const [a, b] = [await open(url), await open(url)]
    await b.store.outbox.recordEvents([event('store.trouble')])
    await a.store.outbox.subscribe({ name: 'app', settings: { ...SETTINGS, types: ['store.*'] }, at: T0, by: 'root' })
    expect(await b.store.outbox.wantedTypes()).toEqual(['store.trouble', 'store.recovered'])
    await b.store.outbox.recordEvents([event('store.trouble')])
    expect(await pulled(a)).toMatchObject([{ seq: 1, type: 'store.trouble' }])
  })
})
