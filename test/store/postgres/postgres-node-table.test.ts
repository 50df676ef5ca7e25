/** The node table in PostgreSQL: beats, shards, arrivals and takeovers, also after failures of its sessions. */
import { ProviderDirectory } from '../../../src/config/provider-directory.ts'
import { ShardKeys } from '../../../src/store/membership/shard-keys.ts'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { DatabaseUrl } from '../../../src/config/values/database-url.ts'
import { Fenced, StoreUnavailable } from '../../../src/store/queue-store.ts'
import type { Connection } from '../../../src/store/postgres/session/database-connection.ts'
import { joinNode } from '../../../src/store/postgres/node.ts'
import * as sql from '../../../src/store/postgres/session/node-queries.ts'
import { ARRIVALS_CHANNEL, PostgresNodeTable } from '../../../src/store/postgres/postgres-node-table.ts'
import type { Duration, Timer } from '../../../src/system/clock.ts'
import { QueueClock } from '../../../src/system/queue-clock.ts'
import { systemClock } from '../../../src/system/system-clock.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

/** Time limits of calls are twenty times as long: a busy machine may stop for longer than their two seconds. */
class PatientClock extends QueueClock {
  override after(delay: Duration, run: () => void): Timer {
    return super.after(20 * delay, run)
  }
}

const clock = new PatientClock(systemClock)

describe.skipIf(WITHOUT_POSTGRES.skip)(`the node table${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()
  let url: DatabaseUrl
  let session: Connection
  const tables: PostgresNodeTable[] = []

  beforeEach(async () => {
    url = await emptyQueue()
    session = await connectTo(url)
  })
  afterEach(async () => {
    await Promise.all(tables.splice(0).map((table) => table.close()))
    await session.end()
  })

  async function join(name: string, draining = false): Promise<PostgresNodeTable> {
    const me = await joinNode(session, { name, program: '1.2.0', settings: 'abc', hostname: '', draining })
    const table = new PostgresNodeTable({
      me,
      terms: { url, durability: 'primary' },
      clock,
      keys: new ShardKeys(new ProviderDirectory()),
    })
    tables.push(table)
    return table
  }

  const addArrival = (shard: number, destination: string): Promise<unknown> =>
    session.query(`insert into arrival (shard, kind, destination, due_at) values ($1, 'due', $2, 7)`, [shard, destination])

  test('a beat counts, and shows all nodes, the shards and the clock of the database', async () => {
    const [a, b] = [await join('a'), await join('b', true)]
    const before = await a.beat()
    await b.takeShards(3)
    const view = await a.beat()
    expect(view?.nodes[0]?.beat).toBe((before?.nodes[0]?.beat ?? 0) + 1)
    expect(view?.nodes).toMatchObject([
      { id: a.me, name: 'a', shards: 0, program: '1.2.0', settings: 'abc', hostname: '', draining: false },
      { id: b.me, name: 'b', beat: 0, shards: 3, draining: true },
    ])
    expect(view).toMatchObject({ freeShards: 253, mine: [] })
    expect(Math.abs((view?.databaseTime ?? 0) - Date.now())).toBeLessThan(5_000)
    expect((await b.beat())?.mine).toEqual([0, 1, 2])
  })

  test('the number of a beat does not come again after a crash of the server, which loses the beats', async () => {
    const a = await join('a')
    const before = (await a.beat())?.nodes[0]?.beat ?? 0
    await session.query('truncate pulse')
    expect((await a.beat())?.nodes[0]?.beat).toBeGreaterThan(before)
  })

  test('a shard has one owner, who alone can give it up', async () => {
    const [a, b] = [await join('a'), await join('b')]
    const [ofA, ofB] = await Promise.all([a.takeShards(200), b.takeShards(200)])
    expect(new Set([...ofA, ...ofB]).size).toBe(ofA.length + ofB.length)
    await b.releaseShards(ofA)
    await a.releaseShards(ofA.slice(0, 10))
    expect((await a.beat())?.mine).toEqual(ofA.slice(10))
    expect((await a.beat())?.freeShards).toBe(256 - ofA.length - ofB.length + 10)
  })

  test('shards are given up after the open transactions of the node', async () => {
    const [a, other] = [await join('a'), await join('b')]
    await a.takeShards(4)
    await session.command('begin')
    await session.query(sql.fence, [a.me, 1])
    let isOver = false
    const released = a.releaseShards([0]).then(() => (isOver = true))
    expect((await other.beat())?.nodes[0]?.shards).toBe(4)
    expect(isOver).toBe(false)
    await session.command('commit')
    await released
  })

  test('arrivals of own shards are returned until the next request, and those of others are left alone', async () => {
    const [a, b] = [await join('a'), await join('b')]
    await a.takeShards(1)
    await b.takeShards(1)
    await addArrival(0, 'near.example')
    await addArrival(1, 'far.example')
    expect((await a.arrivals()).due).toEqual([{ destination: 'near.example', dueAt: 7, revive: false }])
    expect((await a.arrivals()).due).toEqual([])
    expect((await b.arrivals()).due).toEqual([{ destination: 'far.example', dueAt: 7, revive: false }])
  })

  test('an arrival whose answer was lost arrives again', async () => {
    const a = await join('a')
    await a.takeShards(1)
    await addArrival(0, 'near.example')
    const { due } = await a.arrivals()
    const again = new PostgresNodeTable({
      me: a.me,
      terms: { url, durability: 'primary' },
      clock,
      keys: new ShardKeys(new ProviderDirectory()),
    })
    tables.push(again)
    expect((await again.arrivals()).due).toEqual(due)
    expect((await again.arrivals()).due).toEqual([])
  })

  test('an arrival that VACUUM FULL has moved to the place of another one is kept', async () => {
    const a = await join('a')
    const [shard = 0] = await a.takeShards(1)
    await session.command('vacuum full arrival')
    for (const name of ['gone.example', 'seen.example']) await addArrival(shard, name)
    await session.query(`delete from arrival where destination = 'gone.example'`)
    const arrived = async () => (await a.arrivals()).due.map(({ destination }) => destination)
    expect(await arrived()).toEqual(['seen.example'])
    await addArrival(shard, 'new.example')
    await session.command('vacuum full arrival')
    expect(await arrived()).toEqual(['seen.example', 'new.example'])
    expect(await arrived()).toEqual([])
  })

  test('arrivals tell of notices and of saved states too', async () => {
    const a = await join('a')
    await a.takeShards(1)
    const suspension = { by: 'root', until: null, reason: 'full' }
    const record = { name: 'near.example', deadUntil: null, probeInterval: null, suspension, siteStatus: null }
    await session.query(`insert into arrival (shard, kind, message) values (0, 'notices', 5)`)
    await session.query(`insert into arrival (shard, kind, record) values (0, 'destinations', $1)`, [JSON.stringify(record)])
    const provider = { provider: 'big', effects: [] }
    await session.query(`insert into arrival (shard, kind, record) values (0, 'providers', $1)`, [JSON.stringify(provider)])
    expect(await a.arrivals()).toEqual({ due: [], notices: [5], destinations: [record], providers: [provider], recalls: [] })
  })

  test('a notification about own shards is a hint', async () => {
    const a = await join('a')
    await a.takeShards(2)
    await a.beat()
    let hints = 0
    const hinted = new Promise<void>((resolve) => a.onHint(() => (++hints, resolve())))
    await session.query('select pg_notify($1, $2)', [ARRIVALS_CHANNEL, '7,8'])
    await session.query('select pg_notify($1, $2)', [ARRIVALS_CHANNEL, '9,1'])
    await hinted
    expect(hints).toBe(1)
  })

  test('a silent node is taken over, and its later calls are fenced', async () => {
    const [a, b] = [await join('a'), await join('b')]
    const seen = (await a.beat())?.nodes[0]?.beat ?? 0
    await a.takeShards(256)
    expect(await b.takeOver(a.me, 0)).toBeNull()
    expect(await b.takeOver(a.me, seen)).toMatchObject({ shards: 256, leases: 0, corrupt: [] })
    expect(await a.beat()).toBeNull()
    await expect(a.takeShards(1)).rejects.toThrow(Fenced)
    await expect(a.releaseShards([1])).rejects.toThrow(Fenced)
    await a.leave()
    expect((await b.beat())?.freeShards).toBe(256)
  })

  test('a takeover ends the transaction that a silent node has left open', async () => {
    const [a, b] = [await join('a'), await join('b')]
    const writer = await connectTo(url, `deferd ${a.me} w`)
    await writer.command('begin')
    await writer.query(sql.fence, [a.me, 1])
    expect(await b.takeOver(a.me, 0)).toBeNull()
    expect(await b.takeOver(a.me, 0)).not.toBeNull()
    await expect(writer.command('commit')).rejects.toThrow()
  })

  test('a node that leaves frees its shards', async () => {
    const [a, b] = [await join('a'), await join('b')]
    await a.takeShards(256)
    await a.leave()
    expect(await b.beat()).toMatchObject({ freeShards: 256, nodes: [{ id: b.me }] })
  })

  test('draining is a mark in the table', async () => {
    const [a, b] = [await join('a'), await join('b')]
    expect(await b.setDraining(a.me, true)).toBe(true)
    expect((await a.beat())?.nodes[0]?.draining).toBe(true)
    expect(await b.setDraining(a.me + 1_000, true)).toBe(false)
  })

  test('a lost session fails one call, and the next call opens another', async () => {
    const a = await join('a')
    await a.beat()
    const ended = session.query(`select pg_terminate_backend(pid, 1000) from pg_stat_activity where application_name = $1`, [
      `deferd ${a.me} c`,
    ])
    await ended
    const beats = [await a.beat().catch((error: unknown) => error), await a.beat().catch((error: unknown) => error)]
    const [failed] = beats.filter((beat) => beat instanceof Error)
    if (failed !== undefined) expect(failed).toBeInstanceOf(StoreUnavailable)
    expect(beats[1]).toMatchObject({ freeShards: 256 })
  })
})
