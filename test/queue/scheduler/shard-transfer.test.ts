/** A scheduler of one node among several: shards come and go, in virtual time. */
import { idleRecorder } from '../../support/idle-recorder.ts'
import { describe, expect, test } from 'vitest'
import { loadTemplates } from '../../../src/bounce/templates.ts'
import { noticeSettings } from '../../../src/bounce/notice-writer.ts'
import { DestinationPolicies } from '../../../src/config/destination-policies.ts'
import { nameOfProvider, ProviderDirectory } from '../../../src/config/provider-directory.ts'
import { configFrom, defaultConfig } from '../../../src/config/load.ts'
import type { Delivery, DeliveryOptions } from '../../../src/delivery/delivery-agent.ts'
import { recipientId, type DeliveryRequest, type MessageId } from '../../../src/mail/message.ts'
import { storedScheduler } from '../../../src/queue/stored-scheduler.ts'
import { ActiveQueue } from '../../../src/queue/scheduler/active-queue.ts'
import { DestinationTable } from '../../../src/queue/scheduler/destination-table.ts'
import { Scheduler } from '../../../src/queue/scheduler/scheduler.ts'
import { NOTHING_TAKEN } from '../../../src/store/membership/taken-back.ts'
import { NO_ARRIVALS } from '../../../src/store/membership/node-table.ts'
import { SHARDS, shardOf, type Shard } from '../../../src/store/membership/shards.ts'
import { joinMemoryQueue } from '../../support/memory-node-table.ts'
import { emptyQueue } from '../../../src/store/memory/queue-state.ts'
import type { RuleEffect } from '../../../src/store/records/provider-state.ts'
import { Fenced, StoreUnavailable, type DestinationRecord } from '../../../src/store/queue-store.ts'
import { StoreHealth } from '../../../src/store/store-health.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/system/clock.ts'
import { Events, type QueueEvent } from '../../../src/telemetry/events.ts'
import { TimeDriver } from '../../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../../src/testkit/virtual/virtual-clock.ts'
import { BUSY, claim, delivered, first, messagesIn, OK, queue, settleOne, T0 } from '../../conformance/mail.ts'

const { config, written } = defaultConfig('relay.example')
const notices = noticeSettings(config, loadTemplates({ config, written }).templates)
const limits = () => ({ deliveries: 100, messages: 1_000, recipients: 1_000, transportDelay: 0, slots })
const slots = { cost: 5, loan: 3, discount: 50, minimum: 3 }
const FAR = shardOf('far.example')
const ONE_FAR = new Map([['far.example', 1]])
/** A shard without mail. */
const IDLE = (FAR + 1) % SHARDS
const SUSPENDED: DestinationRecord = {
  name: 'far.example',
  suspension: { by: 'root', until: null, reason: null },
  deadUntil: null,
  probeInterval: null,
  siteStatus: null,
}

interface Setting {
  /** Called when the store has become unavailable. */
  readonly failed?: (why: string) => void
  /** The `[provider.NAME]` tables. */
  readonly providers?: Readonly<Record<string, unknown>>
}

/** A scheduler without shards, and another node that owns all of them. The test ends the deliveries. */
async function twoNodes({ failed = expect.unreachable, providers: tables = {} }: Setting = {}) {
  const providers = new ProviderDirectory()
  const policies = new DestinationPolicies(configFrom({ provider: tables }, 'relay.example').config, providers)
  const clock = new VirtualClock({ startsAt: T0 })
  const driver = new TimeDriver(clock, {})
  const shared = emptyQueue()
  const [own, other] = [joinMemoryQueue(shared, { name: 'a', now: () => T0 }), joinMemoryQueue(shared, { name: 'b', now: () => T0 })]
  await other.nodes.takeShards(SHARDS)
  const membership = { held: false, holds: true }
  const deliveries: {
    readonly request: DeliveryRequest
    readonly options: DeliveryOptions
    end(outcome?: 'delivered' | 'deferred' | 'not-begun'): void
  }[] = []
  const seen: QueueEvent[] = []
  const events = new Events(() => clock.now())
  events.listen((event) => seen.push(event))
  const storeHealth = new StoreHealth({ store: own.store.upkeep, clock, holds: () => membership.holds, failed })
  const active = new ActiveQueue(limits)
  const scheduler = new Scheduler({
    recorder: idleRecorder,
    store: own.store,
    clock,
    events,
    membership: {
      isShared: true,
      holds: () => membership.holds,
      shardOf,
      hostnames: () => [],
      owns: (name) => membership.held && shardOf(name) === FAR,
      recall: async () => NOTHING_TAKEN,
      attach: () => undefined,
    },
    storeHealth,
    agent: {
      deliver: (request, options) =>
        new Promise((resolve) =>
          deliveries.push({ request, options, end: (outcome = 'delivered') => resolve(result(request, outcome, clock)) }),
        ),
    },
    active,
    table: new DestinationTable(active, limits, () => policies),
    limits,
    policies: () => policies,
    directory: providers,
    fillsDirectory: false,
    noticeSettings: () => notices,
    draw: () => 0,
    notices: { noticeDue: () => undefined, atRest: () => undefined },
    contents: { release: () => undefined },
  })
  await scheduler.start()
  const advance = (by: number) => driver.runUntil(clock.now() + by)
  const take = async () => {
    await other.nodes.releaseShards([FAR])
    await own.nodes.takeShards(1)
    membership.held = true
    await scheduler.nodes.taken([FAR])
    await advance(0)
  }
  /** Gives the shard away; `done` is set when the other node owns it. */
  const release = () => {
    membership.held = false
    const state = { done: false, given: [] as Shard[] }
    void scheduler.nodes
      .releasing([IDLE, FAR], (shard) => state.given.push(shard))
      .then(async () => {
        await own.nodes.releaseShards([FAR])
        await other.nodes.takeShards(1)
        state.done = true
      })
    return state
  }
  const tried = () => deliveries.map(({ request }) => request.message.id)
  return {
    ...own,
    other,
    scheduler,
    clock,
    providers,
    storeHealth,
    membership,
    deliveries,
    seen,
    advance,
    take,
    release,
    tried,
    leasesOf: () => leases(shared),
  }
}

const leases = ({ messages }: ReturnType<typeof emptyQueue>): readonly MessageId[] =>
  [...messages.values()].filter(({ recipients }) => recipients.some(({ leasedBy }) => leasedBy !== null)).map(({ message }) => message.id)

function result({ recipients }: DeliveryRequest, outcome: 'delivered' | 'deferred' | 'not-begun', clock: VirtualClock): Delivery {
  if (outcome === 'not-begun') return outcome
  const now = clock.now()
  return {
    outcomes: new Map(recipients.map(({ id }) => [id, { outcome, status: outcome === 'delivered' ? OK : BUSY }])),
    feedback: outcome === 'delivered' ? 'positive' : 'negative',
    relay: null,
    connectionUse: 1,
    times: { startedAt: now, transmittingAt: now, endedAt: now },
  }
}

test('mail of a shard is delivered by the node that takes it', async () => {
  const { store, other, scheduler, take, tried, deliveries, advance, leasesOf } = await twoNodes()
  const id = await queue(other.store)
  await advance(10 * SECOND)
  expect(tried()).toEqual([])
  await take()
  expect(tried()).toEqual([id])
  expect(scheduler.admit({ id: store.nextId() }, ONE_FAR).hasAny).toBe(true)
  deliveries[0]?.end()
  await advance(0)
  expect(leasesOf()).toEqual([])
})

test('a suspension that another node saved applies before the first delivery', async () => {
  const { store, other, scheduler, take, tried } = await twoNodes()
  await other.store.saveDestination(SUSPENDED)
  await queue(other.store)
  await take()
  expect(tried()).toEqual([])
  expect(scheduler.admit({ id: store.nextId() }, ONE_FAR).hasAny).toBe(false)
})

test('mail that waits for a slot is given back with its shard, and deliveries in progress are awaited', async () => {
  const { store, other, scheduler, take, release, tried, deliveries, advance } = await twoNodes()
  const ids: MessageId[] = []
  for (let n = 0; n < 8; n++) ids.push(await queue(other.store))
  await take()
  expect(tried()).toEqual(ids.slice(0, 5))
  const released = release()
  expect(scheduler.admit({ id: store.nextId() }, ONE_FAR).hasAny).toBe(false)
  await advance(5 * SECOND)
  expect(released).toEqual({ done: false, given: [IDLE] })
  for (const delivery of deliveries) delivery.end()
  await advance(SECOND)
  expect(released.done).toBe(true)
  expect(tried()).toHaveLength(5)
  expect(messagesIn((await claim(other.store, T0)).requests)).toEqual(ids.slice(5))
  expect(scheduler.destinations.all()).toEqual([])
})

test('a delivery longer than 10 s ends after its shard has another owner, and does not change the saved destination', async () => {
  const { other, take, release, deliveries, advance, leasesOf } = await twoNodes()
  const id = await queue(other.store)
  await take()
  const released = release()
  await advance(9 * SECOND)
  expect(released.done).toBe(false)
  await advance(2 * SECOND)
  expect(released.done).toBe(true)
  expect(leasesOf()).toEqual([id])
  deliveries[0]?.end('deferred')
  await advance(0)
  expect(leasesOf()).toEqual([])
  expect(await other.store.destinations()).toEqual([])
  expect(await other.nodes.arrivals()).toMatchObject({ due: [{ destination: 'far.example' }] })
})

test('a destination whose provider is being changed accepts no lease, and mail that was leased for it is given back', async () => {
  const { store, scheduler, membership, other, take, tried, deliveries, advance, leasesOf } = await twoNodes()
  const joins: { readonly end: () => void }[] = []
  store.joinProvider = async () => {
    await new Promise<void>((end) => joins.push({ end }))
    // The provider is one of the other node.
    membership.held = false
  }
  const id = await queue(other.store)
  await take()
  const [running] = deliveries
  if (running === undefined) throw new Error('nothing was delivered')
  expect(running.options.admits?.('big')).toBe(false)
  running.end('not-begun')
  await advance(SECOND)
  expect([joins.length, leasesOf()]).toEqual([1, []])
  expect(scheduler.admit({ id: store.nextId() }, ONE_FAR).hasAny).toBe(false)
  joins[0]?.end()
  await advance(SECOND)
  // Mail that was admitted here and is committed with a lease after that is the other node's.
  membership.held = true
  const late = await queue(store, { leased: true })
  const admission = scheduler.admit({ id: late }, ONE_FAR)
  membership.held = false
  const [recipient] = running.request.recipients
  if (recipient === undefined) throw new Error('a request has recipients')
  const message = { ...running.request.message, id: late }
  admission.committed([{ ...running.request, message, recipients: [{ ...recipient, id: recipientId(late, 0) }] }])
  await advance(SECOND)
  expect([tried(), leasesOf()]).toEqual([[id], []])
})

test('a destination whose provider has changed keeps the count of its attempts where the node still schedules it', async () => {
  const { store, scheduler, other, take, deliveries, advance } = await twoNodes()
  store.joinProvider = async () => undefined
  for (let n = 0; n < 2; n++) await queue(other.store)
  await take()
  const [failed, running] = deliveries
  failed?.end('deferred')
  await advance(SECOND)
  expect(running?.options.admits?.('big')).toBe(false)
  running?.end('not-begun')
  await advance(SECOND)
  expect(scheduler.destinations.status('far.example')).toMatchObject({ undelivered: { count: 1 }, lastAttempt: { status: BUSY } })
})

test('a shard is not released while new mail for it is being committed, and that mail is then given back', async () => {
  const { store, other, scheduler, take, release, advance, tried, leasesOf } = await twoNodes()
  await take()
  const id = store.nextId()
  const admission = scheduler.admit({ id }, ONE_FAR)
  expect(admission.hasAny).toBe(true)
  const released = release()
  await advance(60 * SECOND)
  expect(released.done).toBe(false)
  admission.withdrawn()
  await advance(SECOND)
  expect(released.done).toBe(true)
  expect([tried(), leasesOf(), (await other.store.destinationsDue()).length]).toEqual([[], [], 0])
})

test('a window starts anew when its shard returns', async () => {
  const { other, scheduler, take, release, deliveries, advance } = await twoNodes()
  for (let n = 0; n < 20; n++) await queue(other.store)
  await take()
  for (let n = 0; n < 10; n++) deliveries[n]?.end()
  await advance(0)
  expect(scheduler.destinations.all()[0]?.window).toBeGreaterThan(5)
  release()
  for (const delivery of deliveries) delivery.end()
  await advance(SECOND)
  await queue(other.store)
  await take()
  expect(scheduler.destinations.all()).toMatchObject([{ destination: 'far.example', window: 5 }])
})

test('orders of an operator at another node are applied by the owner', async () => {
  const { nodes, store, other, scheduler, take, seen, advance } = await twoNodes()
  await take()
  await other.store.saveDestination(SUSPENDED)
  scheduler.nodes.arrived(await nodes.arrivals())
  await advance(0)
  expect(scheduler.destinations.isClosed('far.example')).toBe(true)
  await other.store.saveDestination({ ...SUSPENDED, suspension: null })
  scheduler.nodes.arrived(await nodes.arrivals())
  await advance(0)
  expect(scheduler.destinations.isClosed('far.example')).toBe(false)
  expect(seen.map(({ kind }) => kind)).toEqual(['suspended', 'resumed'])
  expect(await store.destinations()).toEqual([])
})

test('an order for a destination whose saved state is being loaded ends with the store', async () => {
  const failures: string[] = []
  const { nodes, other, scheduler, storeHealth, membership, advance } = await twoNodes({ failed: (why) => failures.push(why) })
  expect(await other.nodes.takeOver(nodes.me, 0)).toMatchObject({ leases: 0 })
  membership.held = true
  const taken = expect(scheduler.nodes.taken([FAR])).rejects.toThrow(Fenced)
  const suspended = expect(scheduler.destinations.suspend('far.example', { by: 'root', until: null, reason: null })).rejects.toThrow(Fenced)
  await advance(2 * SECOND)
  storeHealth.abandon()
  await Promise.all([taken, suspended])
  expect(failures).toEqual(['node 1 was taken over'])
})

test('an order for a destination of another node is sent to its owner', async () => {
  const { other, scheduler, take, advance, seen } = await twoNodes()
  await take()
  await scheduler.destinations.suspend('near.example', { by: 'root', until: null, reason: null })
  expect(await other.nodes.arrivals()).toEqual({ ...NO_ARRIVALS, destinations: [{ ...SUSPENDED, name: 'near.example' }] })
  await advance(0)
  expect([scheduler.destinations.isClosed('near.example'), seen]).toEqual([false, []])
})

test('no delivery begins while another node may have taken this one over', async () => {
  const { nodes, other, scheduler, storeHealth, membership, take, tried, advance } = await twoNodes()
  await take()
  membership.holds = false
  const id = await queue(other.store)
  scheduler.nodes.arrived(await nodes.arrivals())
  await advance(60 * SECOND)
  expect(tried()).toEqual([])
  expect(storeHealth.unavailable).toBe(true)
  membership.holds = true
  scheduler.resumeWork()
  await advance(0)
  expect(tried()).toEqual([id])
})

test('mail whose delivery has not begun when the lease ends is given back, and is no attempt', async () => {
  const { other, scheduler, membership, take, tried, deliveries, seen, advance, leasesOf } = await twoNodes()
  const id = await queue(other.store)
  await take()
  membership.holds = false
  deliveries[0]?.end('not-begun')
  await advance(60 * SECOND)
  expect([tried(), leasesOf(), scheduler.destinations.all()[0]?.inFlight]).toEqual([[id], [], 0])
  membership.holds = true
  scheduler.resumeWork()
  await advance(0)
  expect(tried()).toEqual([id, id])
  expect(deliveries[1]?.request.recipients).toMatchObject([{ attempts: 0, steps: 0 }])
  deliveries[1]?.end()
  await advance(0)
  expect(seen.flatMap((event) => (event.kind === 'attempted' ? [event.attempts.length] : []))).toEqual([1])
})

test('mail whose delivery has not begun when another node takes this one over stays with that node', async () => {
  const failures: string[] = []
  const { nodes, other, storeHealth, membership, take, deliveries, advance } = await twoNodes({ failed: (why) => failures.push(why) })
  const id = await queue(other.store)
  await take()
  await other.nodes.takeOver(nodes.me, 0)
  await other.nodes.takeShards(1)
  const claimed = await claim(other.store, T0)
  membership.holds = false
  deliveries[0]?.end('not-begun')
  await advance(2 * SECOND)
  expect([messagesIn(claimed.requests), failures]).toEqual([[id], ['node 1 was taken over']])
  expect((await settleOne(other.store, id, delivered(first(id), T0))).removed).toBe(true)
  storeHealth.abandon()
  await advance(SECOND)
})

test('orders and mail of other nodes that were missed are found', async () => {
  const { nodes, other, scheduler, take, tried, advance } = await twoNodes()
  await take()
  await other.store.saveDestination(SUSPENDED)
  const id = await queue(other.store)
  await nodes.arrivals()
  scheduler.nodes.missed()
  await advance(0)
  expect([scheduler.destinations.isClosed('far.example'), tried()]).toEqual([true, []])
  await other.store.saveDestination({ ...SUSPENDED, suspension: null })
  await nodes.arrivals()
  scheduler.nodes.missed()
  await advance(0)
  expect([scheduler.destinations.isClosed('far.example'), tried()]).toEqual([false, [id]])
})

/** A provider whose shard is that of far.example. */
const BIG = Array.from({ length: 100_000 }, (_, n) => `p${n}`).find((name) => shardOf(nameOfProvider(name)) === FAR) ?? ''
const rule = { reply: 'Busy', action: 'suspend', for: '1h', name: 'busy' }
const RULES = { [BIG]: { mx: ['.big.example'], rule: [rule, { ...rule, action: 'rate 6/min', name: 'slow', after: '2 in 1h' }] } }
const effect = (name: 'busy' | 'slow', until = T0 + HOUR): RuleEffect => ({
  rule: name,
  action: name === 'busy' ? { kind: 'suspend' } : { kind: 'rate', perMinute: 6 },
  until,
  reply: '450 4.2.1 Busy',
})

/** Two nodes, and far.example as a destination of a provider with these effects. */
async function withProvider(effects: readonly RuleEffect[], more: Setting = {}) {
  const nodes = await twoNodes({ providers: RULES, ...more })
  nodes.providers.set('far.example', BIG)
  await nodes.other.store.records.providers.save({ provider: BIG, effects })
  const saved = async () => (await nodes.other.store.records.providers.all()).flatMap((one) => one.effects.map((of) => of.rule))
  const isClosed = () => nodes.scheduler.destinations.isClosed('far.example')
  return { ...nodes, saved, isClosed }
}

test('providers of a shared queue that another node has changed are not set back when a shard is taken', async () => {
  const { other, take, providers } = await twoNodes()
  await other.store.joinProvider('near.example', 'former')
  providers.set('near.example', 'newer')
  await take()
  expect(providers.of('near.example')).toBe('newer')
})

test('the effects of rules are those that the last owner has saved', async () => {
  const { other, take, release, advance, isClosed } = await withProvider([effect('busy')])
  await queue(other.store)
  await take()
  expect(isClosed()).toBe(true)
  release()
  await advance(SECOND)
  await other.store.records.providers.save({ provider: BIG, effects: [] })
  await take()
  expect(isClosed()).toBe(false)
})

test('a shard that is taken changes no effects of other shards', async () => {
  const { other, store, scheduler, take, deliveries, advance, isClosed } = await withProvider([effect('slow')])
  store.records.providers.save = () => new Promise(() => undefined)
  await queue(other.store)
  await take()
  deliveries[0]?.end('deferred')
  await advance(0)
  expect(isClosed()).toBe(true)
  await scheduler.nodes.taken([IDLE])
  expect(isClosed()).toBe(true)
})

test('effects that are over, and those of rules that are gone, leave the record with the shard', async () => {
  const gone = { ...effect('busy'), rule: 'former' }
  const { other, take, tried, isClosed, saved, advance } = await withProvider([gone, effect('slow', T0 - 1)])
  const id = await queue(other.store)
  await take()
  await advance(0)
  expect([isClosed(), tried(), await saved()]).toEqual([false, [id], []])
})

test('an effect whose save is repeated does not overwrite a newer one', async () => {
  const { other, store, take, deliveries, advance, saved } = await withProvider([], { failed: () => undefined })
  const save = store.records.providers.save.bind(store)
  let tries = 0
  store.records.providers.save = (record) => (tries++ === 0 ? Promise.reject(new StoreUnavailable('full')) : save(record))
  for (let n = 0; n < 2; n++) await queue(other.store)
  await take()
  for (const delivery of deliveries) delivery.end('deferred')
  await advance(0)
  expect(await saved()).toEqual(['busy', 'slow'])
  await advance(2 * SECOND)
  expect([await saved(), tries]).toEqual([['busy', 'slow'], 3])
})

test('an order that ends a suspension by a rule is answered after its commit, and has no effect without one', async () => {
  const { store, other, scheduler, take, isClosed, saved } = await withProvider([effect('busy'), effect('slow')])
  await queue(other.store)
  await take()
  const resume = store.records.providers.resume.bind(store)
  store.records.providers.resume = () => Promise.reject(new StoreUnavailable('full'))
  await expect(scheduler.destinations.resumeProvider(BIG, 'root')).rejects.toThrow('full')
  expect([isClosed(), await saved()]).toEqual([true, ['busy', 'slow']])
  store.records.providers.resume = resume
  await scheduler.destinations.resumeProvider(BIG, 'root')
  expect([isClosed(), await saved()]).toEqual([false, ['slow']])
})

test('an order at another node ends a suspension by a rule', async () => {
  const { nodes, other, scheduler, take, tried, advance, seen, isClosed, saved } = await withProvider([effect('busy'), effect('slow')])
  const id = await queue(other.store)
  await take()
  expect(isClosed()).toBe(true)
  const control = storedScheduler(other.store, other.reader, idleRecorder)
  await control.resumeProvider(BIG, 'root')
  expect(await saved()).toEqual(['slow'])
  scheduler.nodes.arrived(await nodes.arrivals())
  await advance(MINUTE)
  expect([isClosed(), tried(), await saved()]).toEqual([false, [id], ['slow']])
  expect(seen).toContainEqual(expect.objectContaining({ kind: 'provider-resumed', provider: BIG, by: 'an operator at another node' }))
})

test('an order of another node that was missed ends a suspension by a rule', async () => {
  const { nodes, other, scheduler, take, advance, isClosed } = await withProvider([effect('busy')])
  await queue(other.store)
  await take()
  expect(isClosed()).toBe(true)
  await storedScheduler(other.store, other.reader, idleRecorder).resumeProvider(BIG, 'root')
  await nodes.arrivals()
  scheduler.nodes.missed()
  await advance(0)
  expect(isClosed()).toBe(false)
})

test('an order at a node that does not schedule the provider ends a suspension by a rule', async () => {
  const { scheduler, other, saved } = await withProvider([effect('busy')])
  await scheduler.destinations.resumeProvider(BIG, 'root')
  expect([await saved(), (await other.nodes.arrivals()).providers]).toEqual([[], [{ provider: BIG, effects: [] }]])
})

test('an order at another node suspends a provider, and is answered when no attempt of its mail begins any more', async () => {
  const { nodes, other, scheduler, take, tried, advance, seen, isClosed } = await withProvider([], {
    providers: { [BIG]: { mx: ['.big.example'], provider_concurrency_limit: 1 } },
  })
  const ids = [await queue(other.store), await queue(other.store)]
  await take()
  expect(tried()).toEqual(ids.slice(0, 1))
  const suspension = { by: 'root', until: null, reason: 'maintenance' }
  const recall = (asked: Parameters<typeof scheduler.nodes.recalled>[0]) => scheduler.nodes.recalled(asked)
  await storedScheduler(other.store, other.reader, idleRecorder, { recall, transfers: async () => [] }).suspendProvider(BIG, suspension)
  expect(isClosed()).toBe(true)
  expect((await other.reader.destinationLoad('far.example')).leased).toBe(1)
  scheduler.nodes.arrived(await nodes.arrivals())
  await advance(MINUTE)
  expect([isClosed(), tried()]).toEqual([true, ids.slice(0, 1)])
  expect(seen).toContainEqual(expect.objectContaining({ kind: 'provider-suspended', provider: BIG, by: 'root', reason: 'maintenance' }))
})

test.each(['loaded with the shard', 'found when it was missed'])('a suspension by an operator at another node is %s', async (how) => {
  const { nodes, other, scheduler, take, tried, advance, isClosed } = await withProvider([effect('slow')])
  const suspend = () =>
    storedScheduler(other.store, other.reader, idleRecorder).suspendProvider(BIG, { by: 'root', until: T0 + HOUR, reason: null })
  if (how.startsWith('loaded')) await suspend()
  await take()
  // Orders are compared also when no mail of the provider is in memory.
  if (!how.startsWith('loaded')) {
    await suspend()
    await nodes.arrivals()
    scheduler.nodes.missed()
  }
  await advance(0)
  const id = await queue(other.store)
  scheduler.nodes.missed()
  await advance(MINUTE)
  expect([isClosed(), tried()]).toEqual([true, []])
  await advance(HOUR)
  expect([isClosed(), await other.store.records.providers.suspensions()]).toEqual([false, []])
  scheduler.nodes.missed()
  await advance(0)
  expect(tried()).toEqual([id])
})

describe('a destination whose provider is changed and which this node still schedules', () => {
  test('stays suspended', async () => {
    const { other, scheduler, take, deliveries, advance } = await twoNodes({ providers: RULES })
    await queue(other.store)
    await take()
    await scheduler.destinations.suspend('far.example', { by: 'root', until: null, reason: null })
    expect(deliveries[0]?.options.admits?.(BIG)).toBe(false)
    deliveries[0]?.end('not-begun')
    await advance(SECOND)
    expect(scheduler.destinations.isClosed('far.example')).toBe(true)
  })

  test.each(['deferred', 'not-begun'] as const)('is tried again when a delivery that began before ends late: %s', async (outcome) => {
    const { other, take, deliveries, advance, tried } = await twoNodes({ providers: RULES })
    const [id, later] = [await queue(other.store), await queue(other.store)]
    await take()
    expect(deliveries[0]?.options.admits?.(BIG)).toBe(false)
    deliveries[0]?.end('not-begun')
    await advance(11 * SECOND)
    expect(tried()).toEqual([id, later, id])
    deliveries[2]?.end()
    await advance(SECOND)
    deliveries[1]?.end(outcome)
    await advance(10 * MINUTE)
    expect(tried()).toEqual([id, later, id, later])
  })

  test('is tried when a claim that began before has said so late', async () => {
    const { store, other, scheduler, take, deliveries, advance, tried } = await twoNodes({ providers: RULES })
    const id = await queue(other.store)
    await take()
    const later = await queue(other.store, { to: [{ address: 'bob@far.example', dueAt: T0 + 5 * MINUTE }] })
    const claimDue = store.claimDue.bind(store)
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    store.claimDue = (wanted) => answered.then(() => claimDue(wanted))
    scheduler.workAdded([{ destination: 'far.example', dueAt: T0 }])
    expect(deliveries[0]?.options.admits?.(BIG)).toBe(false)
    deliveries[0]?.end()
    await advance(11 * SECOND)
    answer()
    await advance(4 * MINUTE)
    expect(tried()).toEqual([id])
    await advance(MINUTE)
    expect(tried()).toEqual([id, later])
  })
})
