/** Sessions of others that hold locks: VACUUM FULL or LOCK TABLE on a table, and a transaction on a row. */
import { afterAll, describe, expect, test } from 'vitest'
import { SHARDS } from '../../../src/store/membership/shards.ts'
import { openPostgresStore, type PostgresQueue } from '../../../src/store/postgres/open-store.ts'
import type { Connection } from '../../../src/store/postgres/session/database-connection.ts'
import { takeShards } from '../../../src/store/postgres/session/node-queries.ts'
import { StoreUnavailable } from '../../../src/store/queue-store.ts'
import { realClock } from '../../support/real-clock.ts'
import { claim, delivered, first, mail, MIN, queue, settleOne, T0 } from '../../conformance/mail.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

const labels = { name: 'n1', program: '1.0.0', settings: '', hostname: '', draining: false }
/** Time in ms after which a call must be answered: three times lock_timeout, with margin for a busy machine. */
const LIMIT = 50_000

describe.skipIf(WITHOUT_POSTGRES.skip)(`foreign locks${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()
  let opened: { readonly queue: PostgresQueue; readonly other: Connection }[] = []

  afterAll(async () => {
    for (const { queue: one, other } of opened) await Promise.all([one.destroy(), other.end()])
    opened = []
  })

  /** A queue in a database of its own, and a session of somebody else. */
  async function open(database: string) {
    const url = await emptyQueue(database)
    const one = await openPostgresStore({ url, durability: 'primary', labels, clock: realClock })
    const other = await connectTo(url)
    opened.push({ queue: one, other })
    await other.query(takeShards, [one.node, SHARDS])
    await other.command('set idle_in_transaction_session_timeout = 0')
    const count = async (what: string) => (await other.query<{ n: number }>(`select count(*) as n from ${what}`))[0]?.n
    return { store: one.store, other, count }
  }

  const outcomesOf = async (calls: readonly Promise<unknown>[]): Promise<readonly string[]> => {
    const outcomes = await Promise.allSettled(calls)
    return outcomes.map((one) =>
      one.status === 'fulfilled' ? 'done' : one.reason instanceof StoreUnavailable ? 'away' : String(one.reason),
    )
  }

  test.concurrent('calls are rejected in bounded time while a table is locked, without effect, and accepted after it', async () => {
    const { store, other, count } = await open('tables')
    const id = await queue(store, { leased: true })
    await other.command('begin')
    await other.command('lock table message, recipient in access exclusive mode')
    const begun = performance.now()
    const entries = Array.from({ length: 40 }, () => mail(store))
    const late = new Promise((resolve) => void setTimeout(resolve, 1_000)).then(() => store.enqueue(mail(store)))
    const calls = [
      ...entries.map((entry) => store.enqueue(entry)),
      late,
      settleOne(store, id, delivered(first(id), T0)),
      claim(store, T0),
      store.readChunk(id, 0),
    ]
    expect(new Set(await outcomesOf(calls))).toEqual(new Set(['away']))
    expect(performance.now() - begun).toBeLessThan(LIMIT)
    await expect(calls[0]).rejects.toThrow('pg_locks')
    await other.command('commit')
    expect([await count('message'), await count('history')]).toEqual([1, 0])
    for (const entry of entries) await store.enqueue(entry)
    expect((await settleOne(store, id, delivered(first(id), T0))).removed).toBe(true)
    expect([await count('message'), await count('history')]).toEqual([40, 1])
  })

  test.concurrent('a locked row delays its own call only', async () => {
    const { store, other, count } = await open('rows')
    const [locked, free] = [await queue(store, { leased: true }), await queue(store, { leased: true })]
    await other.command('begin')
    await other.query('update message set warn_at = $2 where id = $1', [locked, T0 + MIN])
    const entries = Array.from({ length: 10 }, () => mail(store))
    const calls = [
      settleOne(store, locked, delivered(first(locked), T0)),
      settleOne(store, free, delivered(first(free), T0)),
      ...entries.map((entry) => store.enqueue(entry)),
    ]
    expect(await outcomesOf(calls)).toEqual(['away', 'done', ...entries.map(() => 'done')])
    await other.command('rollback')
    expect((await settleOne(store, locked, delivered(first(locked), T0))).removed).toBe(true)
    expect([await count('message'), await count('history')]).toEqual([10, 2])
  })
})
