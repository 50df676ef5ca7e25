/** Changes of providers: the locks that they take, and the mail that follows a destination to its new shard. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { DatabaseUrl } from '../../../src/config/values/database-url.ts'
import { RECIPIENTS_PER_MESSAGE } from '../../../src/mail/message.ts'
import { SHARDS, shardOf } from '../../../src/store/membership/shards.ts'
import { shardUnder } from '../../../src/store/membership/shard-keys.ts'
import { openPostgresStore, type PostgresQueue } from '../../../src/store/postgres/open-store.ts'
import { releaseShards, takeShards } from '../../../src/store/postgres/session/node-queries.ts'
import type { Connection } from '../../../src/store/postgres/session/database-connection.ts'
import { int2s } from '../../../src/store/postgres/session/arrays.ts'
import { ANY_MESSAGE } from '../../../src/store/message-conditions.ts'
import { StoreUnavailable } from '../../../src/store/queue-store.ts'
import type { Clock } from '../../../src/system/clock.ts'
import { realClock } from '../../support/real-clock.ts'
import { claim, messagesIn, queue, T0 } from '../../conformance/mail.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

/** A clock that runs `times` as fast. */
const hurried = (times: number): Clock => ({
  now: () => realClock.now(),
  wall: realClock.wall,
  monotonic: () => realClock.monotonic() * times,
  after: (delay, action) => realClock.after(delay / times, action),
  alarm: (at, action) => realClock.alarm(at, action),
  zone: (at) => realClock.zone(at),
})

const FAR = shardOf('far.example')
const JOINED = shardUnder('far.example', 'big')
const AT_FAR = { ...ANY_MESSAGE, destination: 'far.example' }

describe.skipIf(WITHOUT_POSTGRES.skip)(`changes of providers${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()
  let url: DatabaseUrl
  let direct: Connection
  let closing: (() => Promise<unknown>)[] = []

  beforeEach(async () => {
    url = await emptyQueue()
    direct = await connectTo(url)
    closing = [() => direct.end()]
  })
  afterEach(async () => {
    for (const close of closing.toReversed()) await close()
  })

  /** Joins as a node, which takes all free shards. */
  async function join(clock: Clock = realClock): Promise<PostgresQueue> {
    const labels = { name: 'n', program: '1.0.0', settings: '', hostname: '', draining: false }
    const node = await openPostgresStore({ url, durability: 'primary', labels, clock, tallyKeptFor: 0 })
    closing.push(node.close)
    await direct.query(takeShards, [node.node, SHARDS])
    return node
  }

  /** Runs `work` while a transaction has locked rows. */
  async function whileLocked(lock: string, work: () => Promise<void>): Promise<void> {
    const other = await connectTo(url)
    await other.command('begin')
    await other.command(lock)
    try {
      await work()
    } finally {
      await other.command('rollback')
      await other.end()
    }
  }

  const shards = async () => (await direct.query<{ shard: number }>('select shard from recipient order by id')).map(({ shard }) => shard)
  const movesFrom = async () =>
    (await direct.query<{ from: number[] }>('select to_json(moves_from) as from from provider_member')).map(({ from }) => from)

  test('a change waits for no mail in use; that mail is shown, is claimed by nobody, and follows', async () => {
    const [a, b] = [await join(), await join()]
    await direct.query(releaseShards, [a.node, int2s([JOINED])])
    await direct.query(takeShards, [b.node, 1])
    const [locked, free] = [await queue(a.store), await queue(a.store)]
    await whileLocked(`select 1 from recipient where id < ${(locked + 1) * RECIPIENTS_PER_MESSAGE} for update`, async () => {
      await a.store.joinProvider('far.example', 'big')
      // The node that made the change knows it at once.
      expect(a.keys.shardOf('far.example')).toBe(JOINED)
      expect([await shards(), await movesFrom()]).toEqual([[FAR, JOINED], [[FAR]]])
      // No node is held up, and new mail has the new shard.
      expect((await queue(a.store)) > free).toBe(true)
      expect(await shards()).toEqual([FAR, JOINED, JOINED])
      expect((await b.reader.list(AT_FAR, { after: 0, limit: 10 })).map(({ message }) => message.id)).toContain(locked)
      expect((await b.reader.list(AT_FAR, { after: 0, limit: 10, newestFirst: true })).length).toBe(3)
      expect(await b.reader.destinationLoad('far.example')).toMatchObject({ waiting: 3, nextDueAt: T0 })
      expect(messagesIn((await claim(a.store, T0)).requests)).toEqual([])
      expect(messagesIn((await claim(b.store, T0)).requests)).not.toContain(locked)
    })
    // It has failed twice where it was, and is not tried there.
    await direct.query(`update recipient set suspect = true where shard = $1`, [FAR])
    expect(await a.store.claimSuspect(T0)).toBeUndefined()
    await a.store.joinProvider('far.example', 'big')
    expect([await shards(), await movesFrom()]).toEqual([[JOINED, JOINED, JOINED], [[]]])
    // A claim passes over mail that a slice of the other node has locked meanwhile.
    await expect.poll(async () => (await b.store.claimSuspect(T0))?.message.id).toBe(locked)
  })

  test('mail of two former shards follows', async () => {
    const a = await join()
    const id = await queue(a.store)
    const leased = await queue(a.store, { leased: true })
    await whileLocked('select 1 from recipient for update', async () => {
      await a.store.joinProvider('far.example', 'big')
      const later = await queue(a.store)
      await whileLocked('select 1 from recipient for update skip locked', async () => {
        await a.store.joinProvider('far.example', 'small')
        expect([await shards(), await movesFrom()]).toEqual([[FAR, FAR, JOINED], [[FAR, JOINED]]])
        expect((await a.reader.list(AT_FAR, { after: 0, limit: 10 })).map(({ message }) => message.id)).toEqual([id, leased, later])
      })
    })
    await a.store.joinProvider('far.example', 'big')
    expect([await shards(), await movesFrom()]).toEqual([[JOINED, JOINED, JOINED], [[]]])
    expect(messagesIn((await claim(a.store, T0)).requests)).toHaveLength(2)
  })

  test('the owner of shard 0 moves the mail that a node has left when it ended', async () => {
    const node = await join(hurried(30))
    await queue(node.store)
    await node.store.joinProvider('far.example', 'big')
    await direct.query('update recipient set shard = $1', [FAR])
    await direct.query(`update provider_member set moves_from = array[$1::smallint]`, [FAR])
    await expect.poll(shards).toEqual([JOINED])
    await expect.poll(movesFrom).toEqual([[]])
  })

  test('a change that meets the lock of a node is given up, and its caller repeats it', async () => {
    const a = await join(hurried(8))
    const b = await join()
    await whileLocked(`select 1 from node where id = ${b.node} for share`, async () => {
      await expect(a.store.joinProvider('far.example', 'big')).rejects.toThrow(StoreUnavailable)
    })
    await a.store.joinProvider('far.example', 'big')
    expect(a.keys.providers.of('far.example')).toBe('big')
  })
})
