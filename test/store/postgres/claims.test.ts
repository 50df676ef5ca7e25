/** Claims of several destinations in one statement, claims that pass over what the caller was not told of, and contents that come with claims. */
import { realClock } from '../../support/real-clock.ts'
import { afterEach, describe, expect, test } from 'vitest'
import type { DatabaseUrl } from '../../../src/config/values/database-url.ts'
import { ContentUnreadable } from '../../../src/store/errors.ts'
import { SHARDS } from '../../../src/store/membership/shards.ts'
import { openPostgresStore, type PostgresQueue } from '../../../src/store/postgres/open-store.ts'
import { takeShards } from '../../../src/store/postgres/session/node-queries.ts'
import { MINUTE, type Clock } from '../../../src/system/clock.ts'
import { claim, first, messagesIn, MIN, ownerOf, queue, T0 } from '../../conformance/mail.ts'
import { connectTo, usePostgres, WITHOUT_POSTGRES } from '../../support/postgres-queue.ts'

const labels = { name: 'n1', program: '1.0.0', settings: '', hostname: '', draining: false }

describe.skipIf(WITHOUT_POSTGRES.skip)(`claims${WITHOUT_POSTGRES.why}`, () => {
  const { emptyQueue } = usePostgres()
  let opened: PostgresQueue | null = null
  let url: DatabaseUrl
  afterEach(() => opened?.destroy())

  /** A store whose time a test may advance, also with each look at it. */
  async function open() {
    const time = { ahead: 0, step: 0 }
    const clock: Clock = {
      now: () => realClock.now(),
      wall: realClock.wall,
      monotonic: () => realClock.monotonic() + (time.ahead += time.step),
      after: (delay, action) => realClock.after(delay, action),
      alarm: (at, action) => realClock.alarm(at, action),
      zone: (at) => realClock.zone(at),
    }
    url = await emptyQueue()
    opened = await openPostgresStore({ url, durability: 'primary', labels, clock })
    const direct = await connectTo(url)
    await direct.query(takeShards, [opened.node, SHARDS])
    await direct.end()
    return { store: opened.store, time }
  }

  test('mail before the time that the caller was told of is claimed within a minute', async () => {
    const { store, time } = await open()
    expect(await claim(store, T0 + MIN)).toEqual({ requests: [], nextDueAt: null })
    const [early, late] = [await queue(store, { at: T0 }), await queue(store, { at: T0 + MIN })]
    const { requests, nextDueAt } = await claim(store, T0 + MIN, { from: T0 + MIN })
    expect([messagesIn(requests), nextDueAt]).toEqual([[late], null])
    expect(await claim(store, T0 + MIN, { from: T0 + MIN })).toEqual({ requests: [], nextDueAt: null })
    time.ahead = MINUTE
    expect(messagesIn((await claim(store, T0 + MIN, { from: T0 + MIN })).requests)).toEqual([early])
  })

  test('claims of all due mail that take long are rare', async () => {
    const { store, time } = await open()
    time.step = 2_000
    await claim(store, T0 + MIN)
    time.step = 0
    const [early, late] = [await queue(store, { at: T0 }), await queue(store, { at: T0 + MIN })]
    time.ahead += MINUTE
    expect(messagesIn((await claim(store, T0 + MIN, { from: T0 + MIN })).requests)).toEqual([late])
    time.ahead += 60 * MINUTE
    expect(messagesIn((await claim(store, T0 + MIN, { from: T0 + MIN })).requests)).toEqual([early])
  })

  test('claims of one transaction have their own limits, times and next due times', async () => {
    const { store } = await open()
    const queued = async (name: string, at: number) => queue(store, { to: [{ address: `ann@${name}.example` }], at })
    const a = [await queued('a', T0), await queued('a', T0 + 1), await queued('a', T0 + 2)]
    const b = [await queued('b', T0), await queued('b', T0 + 2 * MIN)]
    const [ofA, ofB, ofC] = await Promise.all([
      claim(store, T0 + MIN, { destination: 'a.example', limit: 2 }),
      claim(store, T0, { destination: 'b.example' }),
      claim(store, T0, { destination: 'c.example' }),
    ])
    expect([messagesIn(ofA.requests), ofA.nextDueAt]).toEqual([a.slice(0, 2), T0 + 2])
    expect([messagesIn(ofB.requests), ofB.nextDueAt]).toEqual([b.slice(0, 1), T0 + 2 * MIN])
    expect(ofC).toEqual({ requests: [], nextDueAt: null })
  })

  /** Changes the stored contents, so that a read which asks the database fails. */
  const damage = async (): Promise<void> => {
    const direct = await connectTo(url)
    await direct.query(`update message set content = 'damaged'`)
    await direct.end()
  }

  test('the content of a small message comes with its first claim, and is kept for one read', async () => {
    const { store } = await open()
    const id = await queue(store)
    await claim(store, T0)
    await damage()
    expect(Buffer.from((await store.readChunk(id, 0)) ?? []).toString()).toBe('Subject: hi\r\n\r\nhi\r\n')
    await expect(store.readChunk(id, 0)).rejects.toThrow(ContentUnreadable)
  })

  test('a content that was damaged before the claim is not returned', async () => {
    const { store } = await open()
    const id = await queue(store)
    await damage()
    expect(messagesIn((await claim(store, T0)).requests)).toEqual([id])
    await expect(store.readChunk(id, 0)).rejects.toThrow(ContentUnreadable)
  })

  test('the content is not kept after the end of the lease', async () => {
    const { store } = await open()
    const id = await queue(store)
    await claim(store, T0)
    await store.giveBack([first(id)], ownerOf(store))
    await damage()
    await expect(store.readChunk(id, 0)).rejects.toThrow(ContentUnreadable)
  })

  test('the content of a message with several recipients is read when it is needed', async () => {
    const { store } = await open()
    const id = await queue(store, { to: [{ address: 'ann@far.example' }, { address: 'bob@far.example' }] })
    await claim(store, T0)
    await damage()
    await expect(store.readChunk(id, 0)).rejects.toThrow(ContentUnreadable)
  })
})
