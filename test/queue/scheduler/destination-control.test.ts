import { idleRecorder } from '../../support/idle-recorder.ts'
import { expect, test } from 'vitest'
import { loadTemplates } from '../../../src/bounce/templates.ts'
import { noticeSettings } from '../../../src/bounce/notice-writer.ts'
import { DestinationPolicies } from '../../../src/config/destination-policies.ts'
import { ProviderDirectory } from '../../../src/config/provider-directory.ts'
import { defaultConfig } from '../../../src/config/load.ts'
import { openMemoryStore } from '../../../src/store/memory/memory-store.ts'
import { ActiveQueue } from '../../../src/queue/scheduler/active-queue.ts'
import { nameOfProvider } from '../../../src/config/provider-directory.ts'
import { DestinationTable } from '../../../src/queue/scheduler/destination-table.ts'
import { Scheduler } from '../../../src/queue/scheduler/scheduler.ts'
import { SOLE_MEMBERSHIP, type Membership } from '../../../src/store/membership/membership.ts'
import { NOTHING_TAKEN } from '../../../src/store/membership/taken-back.ts'
import { NO_ARRIVALS } from '../../../src/store/membership/node-table.ts'
import { StoreHealth } from '../../../src/store/store-health.ts'
import type { QueueStore } from '../../../src/store/queue-store.ts'
import { intercepted } from '../../../src/store/methods.ts'
import { Events } from '../../../src/telemetry/events.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'

const { config, written } = defaultConfig('relay.example')
const notices = noticeSettings(config, loadTemplates({ config, written }).templates)
const policies = new DestinationPolicies(config)
const limits = () => ({ deliveries: 100, messages: 1_000, recipients: 1_000, transportDelay: 0, slots })
const slots = { cost: 5, loan: 3, discount: 50, minimum: 3 }

/** A scheduler without mail; what it remembers of destinations is on disk only when `saved` resolves. */
async function schedulerOver(
  store: QueueStore,
  saved: Promise<void>,
  membership = SOLE_MEMBERSHIP,
  told: (kind: string) => void = () => undefined,
): Promise<Scheduler> {
  const clock = new VirtualClock()
  const events = new Events(() => clock.now())
  events.listen(({ kind }) => told(kind))
  const slow = intercepted(store, async (method, _, perform) => {
    if (method === 'saveDestination') await saved
    return perform()
  })
  const active = new ActiveQueue(limits)
  const scheduler = new Scheduler({
    recorder: idleRecorder,
    store: slow,
    clock,
    events,
    membership,
    storeHealth: new StoreHealth({ store: slow.upkeep, clock, failed: () => undefined }),
    agent: { deliver: () => new Promise(() => undefined) },
    active,
    table: new DestinationTable(active, limits, () => policies),
    limits,
    policies: () => policies,
    directory: new ProviderDirectory(),
    fillsDirectory: true,
    noticeSettings: () => notices,
    draw: () => 0,
    notices: { noticeDue: () => undefined, atRest: () => undefined },
    contents: { release: () => undefined },
  })
  await scheduler.start()
  return scheduler
}

const admits = (scheduler: Scheduler, store: QueueStore, name: string): boolean =>
  scheduler.admit({ id: store.nextId() }, new Map([[name, 1]])).has(name)

test('a destination that was dropped from memory while its suspension was stored is suspended all the same', async () => {
  const { store } = openMemoryStore()
  const saved = Promise.withResolvers<void>()
  const scheduler = await schedulerOver(store, saved.promise)
  const suspended = scheduler.destinations.suspend('far.example', { by: 'operator', until: null, reason: null })
  await scheduler.scan()
  saved.resolve()
  await suspended
  expect(scheduler.destinations.isClosed('far.example')).toBe(true)
  expect(admits(scheduler, store, 'far.example')).toBe(false)
  await scheduler.destinations.resume('far.example', 'operator')
  expect(await store.destinations()).toEqual([])
  expect(scheduler.destinations.isClosed('far.example')).toBe(false)
})

test('a suspension by another node that arrives and is found in the store meanwhile is told once', async () => {
  const { store } = openMemoryStore()
  const saved = Promise.withResolvers<void>()
  const told: string[] = []
  const scheduler = await schedulerOver(store, saved.promise, SOLE_MEMBERSHIP, (kind) => told.push(kind))
  const suspension = { by: 'operator', until: null, reason: null }
  const record = { name: 'far.example', suspension, deadUntil: null, probeInterval: null, siteStatus: null }
  await store.saveDestination(record)
  scheduler.nodes.arrived({ ...NO_ARRIVALS, destinations: [record] })
  scheduler.nodes.missed()
  saved.resolve()
  await scheduler.nodes.recalled({ messages: [], destination: null, rests: false })
  await expect.poll(() => scheduler.destinations.isClosed('far.example')).toBe(true)
  expect(told.filter((kind) => kind === 'suspended')).toHaveLength(1)
})

test('a suspension by another node holds as soon as it arrives, before this node has saved it again', async () => {
  const { store } = openMemoryStore()
  const saved = Promise.withResolvers<void>()
  const scheduler = await schedulerOver(store, saved.promise)
  const suspension = { by: 'operator', until: null, reason: null }
  const record = { name: 'far.example', suspension, deadUntil: null, probeInterval: null, siteStatus: null }
  scheduler.nodes.arrived({ ...NO_ARRIVALS, destinations: [record] })
  expect(scheduler.destinations.isClosed('far.example')).toBe(true)
  expect(admits(scheduler, store, 'far.example')).toBe(false)
  expect(await store.destinations()).toEqual([])
  saved.resolve()
  await expect.poll(() => store.destinations()).toEqual([record])
})

test.each(['arrives first', 'is found first'])('a suspension of a provider by another node that %s is told once', async (order) => {
  const { store } = openMemoryStore()
  const told: string[] = []
  const scheduler = await schedulerOver(store, Promise.resolve(), SOLE_MEMBERSHIP, (kind) => told.push(kind))
  const change = { provider: 'bigmail', suspension: { by: 'operator', until: null, reason: null } }
  await store.records.providers.suspend(change)
  const ways = [
    async () => scheduler.nodes.arrived({ ...NO_ARRIVALS, providers: [change] }),
    () => scheduler.nodes.recalled({ messages: [], destination: nameOfProvider('bigmail'), rests: false }),
  ]
  for (const way of order === 'arrives first' ? ways : ways.toReversed()) await way()
  expect(told.filter((kind) => kind === 'provider-suspended')).toHaveLength(1)
})

test('a suspension of a destination that another node schedules is saved, and waits until that node has given its mail back', async () => {
  const { store } = openMemoryStore()
  const asked: unknown[] = []
  const answered = Promise.withResolvers<void>()
  const recall: Membership['recall'] = async ({ destination }) => {
    asked.push([destination, (await store.destinations()).map(({ name }) => name)])
    await answered.promise
    return NOTHING_TAKEN
  }
  const scheduler = await schedulerOver(store, Promise.resolve(), { ...SOLE_MEMBERSHIP, owns: () => false, recall })
  let isSuspended = false
  const suspended = scheduler.destinations
    .suspend('far.example', { by: 'operator', until: null, reason: null })
    .then(() => (isSuspended = true))
  await expect.poll(() => asked).toEqual([['far.example', ['far.example']]])
  expect(isSuspended).toBe(false)
  answered.resolve()
  await suspended
})

test('mail is not admitted for a destination that another node schedules', async () => {
  const { store } = openMemoryStore()
  const membership: Membership = { ...SOLE_MEMBERSHIP, owns: (destination) => destination === 'near.example' }
  const scheduler = await schedulerOver(store, Promise.resolve(), membership)
  expect(['near.example', 'far.example'].map((name) => admits(scheduler, store, name))).toEqual([true, false])
})
