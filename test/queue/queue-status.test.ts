import { expect, test } from 'vitest'
import { readStatus, type LiveStatus, type QueueStatus } from '../../src/queue/queue-status.ts'
import { balanceOf } from '../../src/store/counts/queue-balance.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { completeTally } from '../../src/store/counts/queue-tally.ts'
import type { QueueReader } from '../../src/store/queue-reader.ts'
import type { LiveDestination } from '../../src/queue/scheduler/destination.ts'
import { WallView } from '../../src/system/wall-view.ts'
import { NO_TRAFFIC } from '../../src/store/counts/traffic.ts'
import { bounced, deferred, delivered, first, MIN, queue, settleOne, T0 } from '../conformance/mail.ts'
import { liveDestination } from '../support/live-destination.ts'
import { operate } from '../support/operate.ts'
import { QueueWorld } from '../support/queue-world.ts'

async function smallQueue() {
  const { store, reader } = openMemoryStore()
  const ids = await Promise.all(Array.from({ length: 6 }, () => queue(store, { leased: true })))
  const [one = 0, two = 0, three = 0, four = 0] = ids
  await settleOne(store, one, delivered(first(one), T0 + MIN), T0 + MIN)
  await settleOne(store, two, bounced(first(two), T0 + MIN), T0 + MIN)
  await settleOne(store, three, deferred(first(three), T0 + 9 * MIN), T0 + MIN)
  await settleOne(store, four, deferred(first(four), T0 + 9 * MIN), T0 + MIN)
  await operate(store, four, { kind: 'delete', now: T0, purge: false })
  await store.saveDestination({
    name: 'far.example',
    deadUntil: null,
    probeInterval: null,
    suspension: { by: 'root', until: null, reason: 'why' },
    siteStatus: null,
  })
  return { store, reader }
}

const statusAt = (reader: QueueReader, live: LiveStatus | null, now: number) =>
  readStatus({ reader, clock: { now: () => now, wall: new WallView(() => now) }, schedules: new Map() }, live)

test('without a daemon, the status is that of the store', async () => {
  const { reader } = await smallQueue()
  expect(await statusAt(reader, null, T0 + 2 * MIN)).toMatchObject({
    running: null,
    trash: { messages: 1, recipients: 1 },
    oldestArrival: T0,
    lastHour: { accepted: 6, delivered: 1, bounced: 1, deferred: 2 },
    closed: [{ destination: 'far.example', waiting: 1 }],
    balance: { accepted: 6, delivered: 1, returned: 1, deleted: 1, waiting: 3, difference: 0 },
  })
  expect((await statusAt(reader, null, T0 + 90 * MIN)).lastHour).toEqual(NO_TRAFFIC)
})

test('with a daemon, it has the same figures, and rates', async () => {
  const { store, reader } = await smallQueue()
  const rates = { last10s: { ...NO_TRAFFIC, accepted: 2 }, last5min: NO_TRAFFIC }
  const live: LiveStatus = { version: '1', tally: await completeTally(() => store.tally(20)), rates, destinations: [], recent: [] }
  const [running, stopped] = [await statusAt(reader, live, T0 + MIN), await statusAt(reader, null, T0 + MIN)]
  // Without a daemon, scheduled mail is not counted by destination.
  const uncounted = (all: QueueStatus['largest']) => all.map((one) => ({ ...one, scheduled: null }))
  const { largest, closed, refusing, throttled } = running
  expect({ ...running, largest: uncounted(largest), closed: uncounted(closed), refusing, throttled }).toEqual({
    ...stopped,
    running: { version: '1', rates },
  })
})

test('recipients that are missing or counted twice make a difference', () => {
  const traffic = { ...NO_TRAFFIC, accepted: 5, delivered: 2, expired: 1 }
  const counted = (recipients: number) => [{ queue: 'hold' as const, messages: 1, recipients, oldestArrival: 0 }]
  const trash = { messages: 0, recipients: 0 }
  expect(balanceOf({ queues: counted(1), trash, traffic }).difference).toBe(1)
  expect(balanceOf({ queues: counted(3), trash, traffic }).difference).toBe(-1)
})

test('a relay reports its rates, and the last outcomes of its largest destinations', async () => {
  const world = await QueueWorld.create({ remote: () => ({ kind: 'replies', reply: '450 4.2.1 busy 7' }) })
  await world.accept(['ann@far.example', 'bob@far.example'])
  await world.advance(10_000)
  const { rates, recent, tally } = await world.relay.status.all()
  expect(rates.last10s).toMatchObject({ accepted: 0.2, deferred: 0.2 })
  expect(recent).toMatchObject([
    { destination: 'far.example', outcomes: ['deferred', 'deferred'], causes: [{ cause: '450 4.2.1 busy {n}', attempts: 2 }] },
  ])
  expect(balanceOf(tally)).toMatchObject({ accepted: 2, waiting: 2, difference: 0 })
})

test('a throttled destination needs attention when a large part of the queue waits for it', async () => {
  const { store, reader } = await smallQueue()
  const tally = await completeTally(() => store.tally(20))
  const throttled = async (recipients: number, state: LiveDestination['state'] = 'throttled') => {
    const queues = [{ queue: 'deferred' as const, messages: 1_000, recipients: 1_000, oldestArrival: T0 }]
    const live: LiveStatus = {
      version: '1',
      tally: { ...tally, queues, waiting: [{ destination: 'big.example', recipients, leased: 0, scheduled: 0 }] },
      rates: { last10s: NO_TRAFFIC, last5min: NO_TRAFFIC },
      destinations: [liveDestination('big.example', { state })],
      recent: [],
    }
    return (await statusAt(reader, live, T0 + MIN)).throttled.map(({ destination }) => destination)
  }
  expect(await throttled(400)).toEqual(['big.example'])
  expect(await throttled(400, 'open')).toEqual([])
  expect(await throttled(150)).toEqual([])
})
