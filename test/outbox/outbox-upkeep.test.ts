/** Upkeep of the outbox of a daemon, in virtual time. */
import { expect, onTestFinished, test } from 'vitest'
import type { EventsTable } from '../../src/config/values/tables/event-tables.ts'
import { ANY_EVENT } from '../../src/events/event-filter.ts'
import { ALL_EVENTS, settingsOf } from '../../src/outbox/configured-subscriptions.ts'
import { EventRecorder } from '../../src/outbox/event-recorder.ts'
import { OutboxUpkeep } from '../../src/outbox/outbox-upkeep.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { StoreUnavailable, type QueueStore } from '../../src/store/queue-store.ts'
import { intercepted } from '../../src/store/methods.ts'
import { MINUTE, type Clock } from '../../src/system/clock.ts'
import { QueueClock } from '../../src/system/queue-clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

interface Options {
  readonly events?: Readonly<Record<string, Partial<EventsTable>>>
  readonly limit?: number
  readonly store?: (store: QueueStore) => QueueStore
}

function upkeepOf({ events: tables = {}, limit = 1_000, store: wrapped = (one) => one }: Options) {
  const machine = new VirtualClock({})
  const clock: Clock = new QueueClock(machine)
  const driver = new TimeDriver(machine, {})
  const { store, reader } = openMemoryStore()
  const notes: string[] = []
  const events = new Events(() => clock.wall.now())
  events.listen((event) => void (event.kind === 'note' && notes.push(event.text)))
  const settings = {
    event_retention: 10 * MINUTE,
    event_limit: limit,
    events: new Map(Object.entries(tables).map(([name, table]) => [name, { ...ALL_EVENTS, ...table }])),
  }
  const recorder = new EventRecorder(clock)
  const outbox = new OutboxUpkeep({ outbox: wrapped(store).outbox, recorder, clock, config: () => settings, events, isShared: false })
  onTestFinished(() => outbox.stop())
  const record = async () => store.outbox.recordEvents(recorder.of({ kind: 'store-recovered' }) ?? [])
  const kept = async () => (await reader.eventsAfter({ after: 0, limit: 10_000, filter: ANY_EVENT })).events.map(({ seq }) => seq)
  const advance = (time: number) => driver.runUntil(machine.now() + time)
  return { outbox, recorder, store, reader, settings, notes, record, kept, advance }
}

test('the tables of the configuration become subscriptions, and change with it', async () => {
  const { outbox, recorder, store, settings, notes } = upkeepOf({ events: { app: { types: ['store.*'] }, taken: {} } })
  await store.outbox.subscribe({ name: 'taken', settings: settingsOf(ALL_EVENTS), at: 0, by: 'root' })
  await outbox.start()
  expect(notes).toEqual([expect.stringContaining('[events.taken] has no effect, because a subscription by command has the name')])
  expect((await store.outbox.subscriptions()).map(({ name, owner }) => [name, owner])).toEqual([
    ['app', 'configuration'],
    ['taken', 'command'],
  ])
  expect(recorder.isIdle).toBe(false)
  await store.outbox.unsubscribe('taken')
  settings.events.clear()
  await outbox.configure()
  expect(await store.outbox.subscriptions()).toEqual([])
  expect(recorder.isIdle).toBe(true)
})

test('listeners are called once for events that are recorded together, when they can be read', async () => {
  const { outbox, record, kept, advance } = upkeepOf({ events: { app: {} } })
  await outbox.start()
  const published: Promise<readonly number[]>[] = []
  const end = outbox.onPublished(() => published.push(kept()))
  await record()
  await record()
  await advance(20)
  expect(await Promise.all(published)).toEqual([[1, 2]])
  end()
  await record()
  await advance(20)
  expect(published).toHaveLength(1)
})

test('under load, listeners are called ten times a second', async () => {
  const { outbox, record, advance } = upkeepOf({ events: { app: {} } })
  await outbox.start()
  let published = 0
  outbox.onPublished(() => published++)
  for (let n = 0; n < 100; n++) {
    await record()
    await advance(10)
  }
  await advance(100)
  expect(published).toBeGreaterThanOrEqual(10)
  expect(published).toBeLessThanOrEqual(12)
})

test('events beyond their age and number are deleted', async () => {
  const { outbox, record, kept, advance } = upkeepOf({ events: { app: {} }, limit: 3 })
  await outbox.start()
  for (let n = 0; n < 5; n++) await record()
  expect(await kept()).toHaveLength(5)
  await advance(MINUTE)
  expect(await kept()).toEqual([3, 4, 5])
  await advance(10 * MINUTE)
  expect(await kept()).toEqual([5])
})

test('many events are counted against the limit at once', async () => {
  const { outbox, record, kept, advance } = upkeepOf({ events: { app: {} }, limit: 100 })
  await outbox.start()
  for (let n = 0; n < 1_000; n++) await record()
  await advance(1)
  // The last event was recorded beside the deletion.
  expect(await kept()).toHaveLength(101)
})

test('a queue that cannot be written does not keep a relay from its start', async () => {
  let isFull = true
  const { outbox, recorder, notes, advance } = upkeepOf({
    events: { app: {} },
    store: (store) =>
      intercepted(store, (method, _, perform) =>
        method === 'configureSubscriptions' && isFull ? Promise.reject(new StoreUnavailable('the disk is full')) : perform(),
      ),
  })
  await outbox.start()
  expect(notes).toEqual([expect.stringContaining('have no effect yet: the disk is full')])
  isFull = false
  await advance(MINUTE)
  expect(recorder.isIdle).toBe(false)
})
