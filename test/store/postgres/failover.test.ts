/** A failover to a standby that has not received the last commits, and the state of the database that a node reads. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { queueIdOf } from '../../../src/mail/message.ts'
import type { DatabaseState } from '../../../src/store/membership/database-state.ts'
import { openPostgresStore } from '../../../src/store/postgres/open-store.ts'
import { RecentMail } from '../../../src/store/postgres/committing/recent-mail.ts'
import type { Failover } from '../../../src/store/membership/writing-events.ts'
import { ID_BLOCK } from '../../../src/store/id-buffer.ts'
import { SHARDS } from '../../../src/store/membership/shards.ts'
import { takeShards } from '../../../src/store/postgres/session/node-queries.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { realClock } from '../../support/real-clock.ts'
import { delivered, first, mail, queue, settleOne, T0 } from '../../conformance/mail.ts'
import { connectTo, urlOf, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'
import { startPostgres, type PostgresServer } from '../../support/postgres-server.ts'

const labels = { name: 'n1', program: '1.0.0', settings: '', hostname: '', draining: false }

/** A primary server with an asynchronous standby. */
async function twoServers() {
  const primary = await startPostgres()
  onTestFinished(() => primary.remove())
  await primary.stop('fast')
  const standby = await startPostgres({ copyOf: primary, follows: primary, settings: { wal_retrieve_retry_interval: '100ms' } })
  onTestFinished(() => standby.remove())
  await primary.start()
  return { primary, standby, url: urlOf(`postgresql://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/postgres`) }
}

const has = async (server: PostgresServer, table: string): Promise<boolean> =>
  (await server.query(`select to_regclass('message') is not null as there`))[0]?.['there'] === true &&
  (await server.query(`select 1 from ${table}`)).length > 0

async function failOver(primary: PostgresServer, standby: PostgresServer): Promise<void> {
  await primary.stop('immediate')
  await standby.start()
  await standby.promote()
}

describe.skipIf(WITHOUT_POSTGRES.skip)(`failover${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()

  test('a node reports the acknowledged mail that a standby has not received, and keeps the ids that it may still use', async () => {
    const { primary, standby, url } = await twoServers()
    const found: Failover[] = []
    const node = await openPostgresStore({
      url,
      durability: 'primary',
      labels,
      clock: realClock,
      onEvent: (event) => event.kind === 'failover' && found.push(event),
    })
    onTestFinished(() => node.destroy())
    const { store } = node
    const kept = await queue(store, { leased: true })
    await expect.poll(() => has(standby, 'message')).toBe(true)
    await standby.stop('fast')
    const lost = mail(store, { leased: true })
    await store.enqueue(lost)
    const left = await queue(store, { leased: true })
    expect(await settleOne(store, left, delivered(first(left), T0))).toMatchObject({ removed: true })
    // Another process has queued mail on the primary only, and joins again after the failover.
    const recent = new RecentMail(systemClock)
    const second = { url, durability: 'primary', labels: { ...labels, name: 'n2' }, clock: realClock, recent } as const
    const before = await openPostgresStore(second)
    const lostToo = mail(before.store)
    await before.store.enqueue(lostToo)
    await before.destroy()
    // The next block of ids is reserved on the primary only.
    for (let n = 0; n < ID_BLOCK - 100; n++) store.nextId()
    await store.upkeep.ping()

    await failOver(primary, standby)
    const works = () =>
      store.upkeep.ping().then(
        () => true,
        () => false,
      )
    await expect.poll(works).toBe(true)
    expect(found).toMatchObject([{ timeline: 2, lost: [queueIdOf(lost.message)] }])
    const foundLater: Failover[] = []
    const other = await openPostgresStore({ ...second, onEvent: (event) => event.kind === 'failover' && foundLater.push(event) })
    onTestFinished(() => other.destroy())
    expect(foundLater).toMatchObject([{ lost: [queueIdOf(lostToo.message)] }])
    const theirs = other.store.nextId()
    const ours = Array.from({ length: 200 }, () => store.nextId())
    expect(Math.max(...ours)).toBeLessThan(theirs)
    expect(Math.min(...ours)).toBeGreaterThan(kept)
    await queue(store)
    expect((await standby.query('select id from message')).length).toBe(2)
  })

  test('the state of the database names the oldest transaction, dead rows and standbys', async () => {
    const url = await emptyQueue()
    const node = await openPostgresStore({ url, durability: 'primary', labels, clock: realClock })
    onTestFinished(() => node.close())
    const direct = await connectTo(url, 'report of alice')
    onTestFinished(() => direct.end())
    await direct.query(takeShards, [node.node, SHARDS])
    const read = () => new Promise<DatabaseState>((resolve) => node.watch(resolve))
    await direct.command('begin isolation level repeatable read')
    await direct.query('select 1')
    const held = await read()
    expect(held.oldest?.of).toMatch(/^report of alice of postgres, process \d+$/)
    expect(held.oldest?.age).toBeLessThan(60_000)
    expect(held.deadRows.map(({ table }) => table)).toEqual(['attempt', 'chunk', 'history', 'message', 'recipient'])
    expect(held.standbys).toEqual([])
    await direct.command('commit')
    expect((await read()).oldest).toBeNull()
  })
})
