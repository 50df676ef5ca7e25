/** Sending of the events of subscriptions, over a queue in memory in virtual time. */
import { ToldAddresses } from '../../src/mail/told-addresses.ts'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import type { EventType } from '../../src/events/event-types.ts'
import type { NewEvent } from '../../src/events/kept-event.ts'
import { ALL_EVENTS, settingsOf } from '../../src/outbox/configured-subscriptions.ts'
import type { NodeTable } from '../../src/store/membership/node-table.ts'
import { SHARDS } from '../../src/store/membership/shards.ts'
import { joinMemoryQueue } from '../support/memory-node-table.ts'
import { intercepted } from '../../src/store/methods.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { emptyQueue } from '../../src/store/memory/queue-state.ts'
import { MOVED_ON } from '../../src/store/outbox/moved-subscription.ts'
import { newProgress } from '../../src/store/outbox/subscription.ts'
import type { TargetAnswer } from '../../src/subscriptions/answer-decision.ts'
import { EventSender } from '../../src/subscriptions/event-sender.ts'
import type { SendEvents } from '../../src/subscriptions/target.ts'
import { seededRandom } from '../../src/system/random.ts'
import { MINUTE, SECOND, sleep } from '../../src/system/clock.ts'
import { QueueClock } from '../../src/system/queue-clock.ts'
import { Events } from '../../src/telemetry/events.ts'
import { TimeDriver } from '../../src/testkit/virtual/time-driver.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'

const OK: TargetAnswer = { kind: 'response', code: 200, retryAfter: null, text: '200 OK' }
const DOWN: TargetAnswer = { kind: 'failed', text: 'connection refused' }

/** Nodes of one queue. They take shards when a test says so. */
function sharedQueue() {
  const machine = new VirtualClock({})
  const clock = new QueueClock(machine)
  const driver = new TimeDriver(machine, {})
  const queue = emptyQueue()
  const join = (name: string, { hangs = false } = {}) => {
    const { store, reader, nodes } = joinMemoryQueue(queue, { name, now: () => clock.now() })
    const sent: string[] = []
    const send: SendEvents = async ({ events, signal }) => {
      sent.push(...events.map(({ type, id }) => `${type} ${id}`))
      if (hangs) await once(signal, 'abort')
      return OK
    }
    const events = new Events(() => clock.wall.now())
    const parts = {
      outbox: store.outbox,
      clock,
      events,
      random: seededRandom(1),
      send,
      secretsOf: () => [],
      obstacle: () => null,
      addresses: new ToldAddresses(),
    }
    const sender = new EventSender({ ...parts, isShared: true })
    onTestFinished(() => sender.stop())
    const takeOver = async ({ me }: NodeTable): Promise<void> => {
      const dead = (await nodes.beat())?.nodes.find(({ id }) => id === me)
      expect(await nodes.takeOver(me, dead?.beat ?? 0)).toMatchObject({ shards: SHARDS })
      await nodes.takeShards(SHARDS)
    }
    return { store, reader, nodes, sender, sent, takeOver }
  }
  return { join, advance: (time: number) => driver.runUntil(machine.now() + time) }
}

/** A sender of subscriptions, whose target gives `answers` and then 200. Each call to the store takes `callTime`. */
async function senderOf({
  answers = [] as (TargetAnswer | Promise<TargetAnswer>)[],
  obstacle = null as string | null,
  names = ['app'],
  callTime = 0,
} = {}) {
  const machine = new VirtualClock({})
  const clock = new QueueClock(machine)
  const driver = new TimeDriver(machine, {})
  const { store: queue, reader } = openMemoryStore()
  let looks = 0
  const store = intercepted(queue, (method, _, perform) => {
    if (method === 'subscriptions') looks++
    return callTime === 0 ? perform() : sleep(clock, callTime).then(perform)
  })
  for (const name of names)
    await queue.outbox.subscribe({ name, settings: { ...settingsOf(ALL_EVENTS), to: 'https://hooks.example/' }, at: 0, by: 'root' })
  const sent: { readonly at: number; readonly type: string; readonly id: string; readonly data: unknown }[] = []
  const notes: string[] = []
  const events = new Events(() => clock.wall.now())
  events.listen((event) => void (event.kind === 'note' && notes.push(event.text)))
  const started = clock.now()
  const state = { obstacle }
  const sender = new EventSender({
    outbox: store.outbox,
    clock,
    events,
    random: seededRandom(1),
    send: async ({ events: consigned }) => {
      for (const { type, id, data } of consigned) sent.push({ at: clock.now() - started, type, id, data })
      return answers.shift() ?? OK
    },
    addresses: new ToldAddresses(),
    secretsOf: () => [],
    obstacle: () => state.obstacle,
    isShared: false,
  })
  onTestFinished(() => sender.stop())
  const record = (...types: readonly EventType[]) => store.outbox.recordEvents(types.map((type) => ({ type, at: clock.now(), data: '[]' })))
  const lose = (count: number) => store.outbox.pruneEvents({ before: 0, count })
  return {
    sender,
    clock,
    store,
    reader,
    looks: () => looks,
    sent,
    notes,
    state,
    record,
    lose,
    advance: (time: number) => driver.runUntil(machine.now() + time),
  }
}

test('subscriptions whose events are read at the same time do not wake one another when all is sent', async () => {
  const { sender, record, sent, looks, advance } = await senderOf({ names: ['app', 'audit', 'crm'], callTime: 10 })
  sender.start()
  const recording = record('message.accepted')
  sender.published()
  await advance(MINUTE)
  await recording
  expect(sent).toHaveLength(3)
  const before = looks()
  expect(before).toBeLessThan(20)
  await advance(MINUTE)
  expect(looks()).toBe(before)
})

test('the events behind a loss are sent at once', async () => {
  const { sender, sent, record, lose, advance } = await senderOf()
  await record('store.trouble', 'store.recovered', 'store.trouble', 'store.recovered')
  await lose(2)
  sender.start()
  await advance(SECOND)
  expect(sent.map(({ type, at }) => [type, at])).toEqual([
    ['events.lost', 0],
    ['store.trouble', 0],
    ['store.recovered', 0],
  ])
  expect(sent[0]?.data).toEqual({ from: 1, to: 2, count: 2 })
})

test('a loss that is not taken is told again with its id; what was lost meanwhile follows at once', async () => {
  const { sender, sent, record, lose, advance, store } = await senderOf({ answers: [DOWN, DOWN] })
  await record('store.trouble', 'store.recovered', 'store.trouble', 'store.recovered')
  await lose(2)
  // The last event is done, so that nothing is behind the losses.
  sender.start()
  await advance(SECOND)
  await record('destination.revived')
  await lose(1)
  await advance(MINUTE)
  expect(sent.map(({ type }) => type)).toEqual(['events.lost', 'events.lost', 'events.lost', 'events.lost', 'destination.revived'])
  expect(new Set(sent.slice(0, 3).map(({ id }) => id)).size).toBe(1)
  expect(sent.slice(2).map(({ data }) => data)).toEqual([{ from: 1, to: 2, count: 2 }, { from: 3, to: 4, count: 2 }, { destination: null }])
  expect(new Set(sent.slice(2).map(({ at }) => at)).size).toBe(1)
  expect((await store.outbox.subscriptions())[0]?.progress).toMatchObject({ tries: 0, dueAt: null, cursor: 5 })
})

test('a loss without events behind it is told again after a failure', async () => {
  const { sender, sent, record, store, lose, advance } = await senderOf({ answers: [DOWN] })
  await record('store.trouble', 'store.recovered')
  await lose(1)
  const [subscription] = await store.outbox.subscriptions()
  if (subscription === undefined) throw new Error('there is no subscription')
  await store.outbox.saveProgress('app', 1, { progress: { ...subscription.progress, cursor: 2 }, told: null, parked: [] })
  sender.start()
  await advance(MINUTE)
  expect(sent.map(({ type }) => type)).toEqual(['events.lost', 'events.lost'])
})

test('nothing is sent that this node must not send, and the log says why once', async () => {
  const { sender, sent, notes, state, record, advance, store } = await senderOf({ obstacle: 'its table differs' })
  await record('store.trouble')
  sender.start()
  sender.wake()
  await advance(SECOND)
  sender.wake()
  await advance(SECOND)
  expect([sent, notes]).toEqual([[], ['events.app: its table differs']])
  expect((await store.outbox.pullEvents('app', 10))?.events).toHaveLength(1)
  state.obstacle = null
  sender.wake()
  await advance(SECOND)
  expect(sent.map(({ type }) => type)).toEqual(['store.trouble'])
})

test('a target that hangs holds up no event of mail, and is told how many it missed', async () => {
  const hanging = Promise.withResolvers<TargetAnswer>()
  const { sender, sent, record, lose, advance, store } = await senderOf({ answers: [hanging.promise] })
  await record('message.accepted')
  sender.start()
  await advance(SECOND)
  // The next events are kept while the first one is being sent, up to the limit.
  for (let n = 0; n < 30; n++) await record('message.removed')
  await lose(10)
  expect(sent).toHaveLength(1)
  hanging.resolve(OK)
  await advance(SECOND)
  expect(sent.map(({ type }) => type)).toEqual(['message.accepted', 'events.lost', ...Array.from({ length: 10 }, () => 'message.removed')])
  // The event that was being sent was deleted, too.
  expect(sent[1]?.data).toEqual({ from: 1, to: 21, count: 21 })
  expect((await store.outbox.subscriptions())[0]?.progress.cursor).toBe(31)
})

test('new events lead to no call of the store while the target hangs, or is tried later', async () => {
  const hanging = Promise.withResolvers<TargetAnswer>()
  const { sender, sent, looks, record, advance } = await senderOf({ answers: [hanging.promise, DOWN] })
  const publish = async (times: number) => {
    const before = looks()
    for (let n = 0; n < times; n++) {
      await record('message.accepted')
      sender.published()
      await advance(10)
    }
    return looks() - before
  }
  sender.start()
  await advance(SECOND)
  expect(await publish(1)).toBe(1)
  expect(await publish(50)).toBe(0)
  hanging.resolve(OK)
  await advance(10)
  // The next try has failed.
  expect(await publish(50)).toBeLessThan(3)
  await advance(MINUTE)
  expect(sent.filter(({ type }) => type === 'message.accepted').length).toBeGreaterThan(100)
  expect(await publish(2)).toBe(2)
})

test('a subscription that is gone while it waits holds up no other one', async () => {
  const { sender, sent, record, advance, store } = await senderOf({ answers: [DOWN] })
  await record('message.accepted')
  sender.start()
  await advance(10)
  await store.outbox.subscribe({ name: 'other', settings: { ...settingsOf(ALL_EVENTS), to: 'https://other.example/' }, at: 0, by: 'root' })
  await store.outbox.unsubscribe('app')
  sender.wake()
  await advance(10)
  expect(sent).toHaveLength(1)
  await record('message.removed')
  sender.published()
  await advance(10)
  expect(sent.map(({ type }) => type)).toEqual(['message.accepted', 'message.removed'])
})

test('parked events are tried again when they are due, though the sender was started before', async () => {
  const { sender, clock, sent, record, advance, store } = await senderOf()
  await record('store.trouble', 'store.recovered')
  const [subscription] = await store.outbox.subscriptions()
  if (subscription === undefined) throw new Error('there is no subscription')
  const parked = [1, 2].map((seq) => ({ seq, tries: 6, at: 0, answer: '400 Bad Request' }))
  await store.outbox.saveProgress('app', 0, { progress: { ...subscription.progress, cursor: 2 }, told: null, parked })
  for (const [seq, wait] of [2 * MINUTE, MINUTE].entries()) {
    await store.outbox.settleParked('app', seq + 1, { kind: 'refused', tries: 7, answer: DOWN.text, dueAt: clock.now() + wait })
  }
  sender.start()
  await advance(3 * MINUTE)
  expect(sent.map(({ type, at }) => [type, at])).toEqual([
    ['store.recovered', MINUTE],
    ['store.trouble', 2 * MINUTE],
  ])
})

const HOOK = { name: 'app', settings: { ...settingsOf(ALL_EVENTS), to: 'https://hooks.example/' }, at: 0, by: 'root' }
const TWO: readonly NewEvent[] = (['store.trouble', 'store.recovered'] as const).map((type) => ({ type, at: 0, data: '[]' }))

test('a node takes a subscription over while it starts, and repeats the event whose answer the former node has not had', async () => {
  const { join, advance } = sharedQueue()
  const a = join('a', { hangs: true })
  await a.nodes.takeShards(SHARDS)
  await a.store.outbox.subscribe(HOOK)
  await a.store.outbox.recordEvents(TWO)
  a.sender.start()
  await advance(SECOND)
  expect(a.sent).toEqual(['store.trouble evt_0_1'])
  const b = join('b')
  b.sender.start()
  await advance(5 * SECOND)
  expect(b.sent).toEqual([])
  await b.takeOver(a.nodes)
  await advance(SECOND)
  expect(b.sent).toEqual(['store.trouble evt_0_1', 'store.recovered evt_0_2'])
  expect(await b.reader.allSubscriptions()).toMatchObject([{ progress: { cursor: 2 }, behind: 0 }])
})

test('what an interrupted move has disabled is enabled at the next start', async () => {
  const { sender, store, sent, record, advance } = await senderOf()
  const progress = { ...newProgress(0), state: 'disabled', why: MOVED_ON } as const
  await store.outbox.saveProgress('app', 0, { progress, told: null, parked: [] })
  await record('store.trouble')
  sender.start()
  await advance(SECOND)
  expect(sent.map(({ type }) => type)).toEqual(['store.trouble'])
})

test('what the final step of a move has disabled is enabled when its node has ended, and not before', async () => {
  const { join, advance } = sharedQueue()
  const a = join('a')
  await a.nodes.takeShards(SHARDS)
  await a.store.outbox.subscribe(HOOK)
  await a.store.outbox.subscribe({ ...HOOK, name: 'gone' })
  a.sender.start()
  await advance(SECOND)
  const disable = (name: string, why: string) =>
    a.store.outbox.saveProgress(name, 0, { progress: { ...newProgress(0), state: 'disabled', why }, told: null, parked: [] })
  await disable('app', MOVED_ON)
  await disable('gone', '410 Gone')
  await a.store.outbox.recordEvents(TWO)
  const b = join('b')
  b.sender.start()
  await advance(5 * SECOND)
  expect([a.sent, b.sent]).toEqual([[], []])
  await b.takeOver(a.nodes)
  await advance(SECOND)
  expect(b.sent).toEqual(['store.trouble evt_0_1', 'store.recovered evt_0_2'])
  expect(await b.reader.allSubscriptions()).toMatchObject([{ progress: { state: 'active' } }, { progress: { why: '410 Gone' } }])
})
