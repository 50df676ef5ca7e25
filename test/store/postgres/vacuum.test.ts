/** Vacuums of the tables of mail by the owner of shard 0. */
import { realClock } from '../../support/real-clock.ts'
import { describe, expect, test } from 'vitest'
import { SHARDS } from '../../../src/store/membership/shards.ts'
import { openPostgresStore } from '../../../src/store/postgres/open-store.ts'
import { pauseAfter } from '../../../src/store/postgres/vacuum.ts'
import { takeShards } from '../../../src/store/postgres/session/node-queries.ts'
import type { Clock } from '../../../src/system/clock.ts'
import { delivered, first, queue, settleOne, T0 } from '../../conformance/mail.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

/** A clock whose timers run thirty times as fast. */
const HURRIED: Clock = {
  now: () => realClock.now(),
  wall: realClock.wall,
  monotonic: () => realClock.monotonic(),
  after: (delay, action) => realClock.after(delay / 30, action),
  alarm: (at, action) => realClock.alarm(at, action),
  zone: (at) => realClock.zone(at),
}

test('the next look comes after 5 s, or after ten times the time of a long vacuum', () => {
  expect([0, 400, 500, 3_000].map(pauseAfter)).toEqual([5_000, 5_000, 5_000, 30_000])
})

describe.skipIf(WITHOUT_POSTGRES.skip)(`vacuum${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()

  test('the owner of shard 0 vacuums tables with many dead rows', async () => {
    const url = await emptyQueue()
    const direct = await connectTo(url)
    const labels = { name: 'n1', program: '1.0.0', settings: '', hostname: '', draining: false }
    const opened = await openPostgresStore({ url, durability: 'primary', labels, clock: HURRIED, vacuumFrom: 100 })
    const vacuums = async () => {
      const rows = await direct.query<{ n: number }>(`select vacuum_count as n from pg_stat_user_tables where relname = 'recipient'`)
      return rows[0]?.n ?? 0
    }
    const deliver = async () => {
      const id = await queue(opened.store, { leased: true })
      await settleOne(opened.store, id, delivered(first(id), T0))
    }
    await Promise.all(Array.from({ length: 200 }, deliver))
    const many = `select 1 from pg_stat_user_tables where relname = 'recipient' and n_dead_tup >= 100`
    // A session reports its dead rows once a second, at the end of a transaction.
    const counted = async () => {
      await opened.store.upkeep.ping()
      return (await direct.query(many)).length
    }
    await expect.poll(counted).toBe(1)
    expect(await vacuums()).toBe(0)
    await direct.query(takeShards, [opened.node, SHARDS])
    await expect.poll(vacuums).toBeGreaterThan(0)
    await opened.close()
    await direct.end()
  })
})
