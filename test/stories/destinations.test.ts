/**
 * Concurrency and states of destinations, as in Postfix qmgr(8) and SCHEDULER_README. Some tests set both feedbacks to 1, Postfix's
 * default. Mail for a dead destination waits for a probe, where Postfix's mail cycles through the queue.
 */
import { describe, expect, test } from 'vitest'
import { HOUR, hours, minutes, seconds } from '../../src/system/clock.ts'
import { type Behaviour, type ModelledDelivery } from '../support/modelled-remote.ts'
import { queueIdOf } from '../../src/mail/message.ts'
import { QueueWorld } from '../support/queue-world.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'

const accepts: Behaviour = { kind: 'accepts' }
const busy: Behaviour = { kind: 'replies', reply: '450 4.2.1 busy' }
const refusing: Behaviour = { kind: 'refuses-connections' }
const tooBusy: Behaviour = { kind: 'too-busy' }
const postfixFeedback = { default_destination_concurrency_positive_feedback: '1', default_destination_concurrency_negative_feedback: '1' }

async function acceptMany(world: QueueWorld, count: number, domain = 'far.example') {
  await Promise.all(Array.from({ length: count }, (_, i) => world.accept([`ann${i}@${domain}`])))
  await world.rest()
}

const destination = (world: QueueWorld, name = 'far.example') =>
  world.relay.schedulerControl.snapshot().find((one) => one.destination === name)
const window = (world: QueueWorld, name?: string) => destination(world, name)?.window

describe('20 messages to a destination that refuses connections', () => {
  const slowly: Behaviour = { kind: 'refuses-connections', takes: 10 }
  test('make five connections; after the third failure it is dead and the other 15 wait untried', async () => {
    const world = await QueueWorld.create({ remote: () => slowly, config: postfixFeedback })
    await acceptMany(world, 20)
    await world.advance(seconds(1))
    expect(world.attempts('far.example')).toHaveLength(5)
    expect(world.happened('died')).toMatchObject([{ at: 10, destination: 'far.example' }])
    const listed = await world.reader.list(ANY_MESSAGE, { after: 0, limit: 100 })
    expect(listed.map(({ recipients }) => recipients[0]?.attempts)).toEqual([1, 1, 1, 1, 1, ...Array.from({ length: 15 }, () => 0)])
    expect(listed.every(({ recipients }) => recipients[0]?.state === 'waiting')).toBe(true)
  })
  test('with 1/concurrency, five failures and at most seven connections', async () => {
    const world = await QueueWorld.create({ remote: () => slowly })
    await acceptMany(world, 20)
    await world.advance(seconds(1))
    expect(world.happened('died')).toHaveLength(1)
    expect(world.attempts('far.example').length).toBeLessThanOrEqual(7)
  })
})

test('mail queued 100 s after the destination became dead waits; the first probe follows after 300 s, then at doubling intervals', async () => {
  const world = await QueueWorld.create({ remote: () => refusing })
  await acceptMany(world, 20)
  const died = world.attempts('far.example').length
  await world.advance(seconds(100))
  await acceptMany(world, 1)
  await world.advance(seconds(199))
  expect(world.attempts('far.example')).toHaveLength(died)
  await world.advance(hours(4))
  expect(world.tried('far.example').slice(died)).toEqual([300, 900, 2100, 4500, 8500, 12_500])
})

describe('limits of the cohort', () => {
  test('initial_destination_concurrency 1: one refusal makes the destination dead', async () => {
    const world = await QueueWorld.create({ remote: () => refusing, config: { initial_destination_concurrency: '1' } })
    await acceptMany(world, 20)
    expect(world.attempts('far.example')).toHaveLength(1)
  })
  test('failed cohort limit 0: 20 messages make 20 connections', async () => {
    const world = await QueueWorld.create({ remote: () => refusing, config: { default_destination_concurrency_failed_cohort_limit: '0' } })
    await acceptMany(world, 20)
    expect(world.attempts('far.example')).toHaveLength(20)
    expect(world.happened('died')).toEqual([])
  })
})

test('one refusal of a lone message and 300 idle seconds reset the window', async () => {
  const world = await QueueWorld.create({
    remote: ({ at }) => (at === 0 ? refusing : { kind: 'accepts', takes: 100 }),
    config: postfixFeedback,
  })
  await acceptMany(world, 1)
  expect(window(world)).toBe(3)
  await world.advance(seconds(301))
  expect(window(world)).toBe(6)
})

test('a message alone at its destination follows its schedule, however often it fails', async () => {
  const world = await QueueWorld.create({ remote: () => refusing, config: { initial_destination_concurrency: '1' } })
  await acceptMany(world, 1)
  await world.advance(hours(4))
  expect(world.tried()).toEqual([0, 300, 900, 2100, 4500, 8500, 12_500])
  expect(world.happened('died')).toEqual([])
})

describe('successes raise the window', () => {
  const served: Behaviour = { kind: 'accepts', takes: seconds(1) }
  test('from 5 to 20 with feedback 1, and no further', async () => {
    const world = await QueueWorld.create({ remote: () => served, config: postfixFeedback })
    await acceptMany(world, 200)
    expect(world.attempts('far.example')).toHaveLength(5)
    await world.advance(seconds(1))
    expect(window(world)).toBe(10)
    await world.advance(seconds(2))
    expect(window(world)).toBe(20)
    await world.advance(seconds(3))
    expect(window(world)).toBe(20)
  })
  test('to 6 after five successes with 1/concurrency', async () => {
    const world = await QueueWorld.create({ remote: () => served })
    await acceptMany(world, 200)
    await world.advance(seconds(1))
    expect(window(world)).toBe(6)
  })
})

test('all recipients get 450 at RCPT: the window grows, the destination stays open', async () => {
  const world = await QueueWorld.create({ remote: () => ({ ...busy, takes: seconds(1) }), config: postfixFeedback })
  await acceptMany(world, 60)
  await world.advance(seconds(1))
  expect(window(world)).toBe(10)
  expect(world.happened('died')).toEqual([])
})

test('421 in every greeting, ten messages: dead after three', async () => {
  const world = await QueueWorld.create({ remote: () => ({ ...tooBusy, takes: 10 }), config: postfixFeedback })
  await acceptMany(world, 10)
  await world.advance(seconds(5))
  expect(world.attempts('far.example')).toHaveLength(5)
  expect(world.happened('died')).toHaveLength(1)
})

test('a failing name server makes the destination dead after three attempts, for 300 s', async () => {
  const world = await QueueWorld.create({ remote: () => ({ ...refusing, takes: 10 }), config: postfixFeedback })
  await acceptMany(world, 8)
  await world.advance(seconds(5))
  expect(destination(world)?.deadUntil).toBe(world.happened('died')[0]!.until)
  expect(world.happened('died')[0]!.until - world.clock.now()).toBe(seconds(300) + 10 - seconds(5))
})

test('a late success revives the destination, with a window of the deliveries still running', async () => {
  let visits = 0
  const far = (): Behaviour => (++visits <= 3 ? { ...refusing, takes: 10 } : { kind: 'accepts', takes: seconds(1) })
  const world = await QueueWorld.create({ remote: far, config: postfixFeedback })
  await acceptMany(world, 20)
  await world.advance(20)
  expect(world.happened('died')).toHaveLength(1)
  await world.advance(seconds(1))
  expect(world.happened('revived')).toMatchObject([{ answered: true }])
  await world.advance(minutes(20))
  expect(new Set(world.attempts('far.example').map(({ message }) => message)).size).toBe(20)
})

test('each message is reported once as it begins to wait for a dead destination, and not again by probes or a restart', async () => {
  const world = await QueueWorld.create({ remote: () => ({ ...refusing, takes: 10 }), config: postfixFeedback })
  await acceptMany(world, 20)
  await world.advance(seconds(1))
  const tried = new Set(world.attempts('far.example').map(({ message }) => message))
  const untried = world.happened('deferred')
  expect(tried.size).toBe(5)
  expect(untried.filter(({ message }) => tried.has(message.id))).toEqual([])
  expect(new Set(untried.map(({ message }) => message.id)).size).toBe(15)
  expect(untried).toHaveLength(15)
  expect(untried[0]).toMatchObject({ destination: 'far.example', siteStatus: { status: '4.4.1', stage: 'connect' } })
  const late = await world.accept(['bob@far.example', 'cy@far.example', 'ann@other.example'])
  const [last] = world.happened('deferred').slice(15)
  expect(last).toMatchObject({ destination: 'far.example', recipients: ['bob@far.example', 'cy@far.example'] })
  expect(last && queueIdOf(last.message)).toBe(late)
  await world.advance(hours(2))
  await world.restart()
  await world.advance(hours(2))
  expect(world.attempts('far.example').length).toBeGreaterThan(5)
  expect(world.happened('deferred')).toHaveLength(16)
})

test('mail for a suspended destination, and mail that a stop returns, is not reported as deferred', async () => {
  const world = await QueueWorld.create({ remote: () => ({ kind: 'accepts', takes: seconds(1) }) })
  await acceptMany(world, 20)
  await world.restart()
  await world.relay.scheduler.destinations.suspend('far.example', { by: 'operator', until: null, reason: null })
  await acceptMany(world, 2)
  expect(world.happened('deferred')).toEqual([])
})

describe('a flush while destinations are dead', () => {
  const dead = async () => {
    const world = await QueueWorld.create({ remote: () => refusing })
    const first = await world.accept(['ann@one.example'])
    await acceptMany(world, 10, 'one.example')
    await acceptMany(world, 10, 'two.example')
    expect(world.happened('died')).toHaveLength(2)
    return { world, first, tried: { one: world.attempts('one.example').length, two: world.attempts('two.example').length } }
  }
  test('of all mail connects to every destination at once', async () => {
    const { world, tried } = await dead()
    await world.operate('flush', 'all')
    expect(world.attempts('one.example').length).toBeGreaterThan(tried.one)
    expect(world.attempts('two.example').length).toBeGreaterThan(tried.two)
    const opened = world.happened('revived')
    expect(opened.map(({ destination: name }) => name)).toEqual(expect.arrayContaining(['one.example', 'two.example']))
    expect(opened.filter(({ answered }) => answered)).toEqual([])
  })
  test('of one message connects to its destinations only', async () => {
    const { world, first, tried } = await dead()
    await world.operate('flush', [first])
    expect(world.attempts('one.example').length).toBeGreaterThan(tried.one)
    expect(world.attempts('two.example')).toHaveLength(tried.two)
  })
})

describe('pauses between deliveries', () => {
  test('a rate delay of 10 s, deliveries of 2 s: starts 12 s apart, never two at once', async () => {
    const far = ({ inFlight }: ModelledDelivery): Behaviour => {
      expect(inFlight).toBe(1)
      return { kind: 'accepts', takes: seconds(2) }
    }
    const world = await QueueWorld.create({ remote: far, config: { default_destination_rate_delay: '10s' } })
    await acceptMany(world, 4)
    await world.advance(minutes(2))
    expect(world.tried('far.example')).toEqual([0, 12, 24, 36])
  })
  test('12 deliveries a minute: starts 5 s apart, side by side when they take longer', async () => {
    const world = await QueueWorld.create({
      remote: () => ({ kind: 'accepts', takes: seconds(7) }),
      config: { default_destination_message_rate_limit: '12' },
    })
    await acceptMany(world, 4)
    await world.advance(minutes(2))
    expect(world.tried('far.example')).toEqual([0, 5, 10, 15])
  })
  test('a transport rate delay of 10 s: one delivery at a time, wherever they go', async () => {
    const world = await QueueWorld.create({
      remote: () => ({ kind: 'accepts', takes: seconds(2) }),
      config: { default_transport_rate_delay: '10s' },
    })
    for (const name of ['one', 'two', 'three']) await world.accept([`ann@${name}.example`])
    await world.advance(minutes(2))
    expect(world.tried()).toEqual([0, 12, 24])
  })
  test('a pause of half a second', async () => {
    const world = await QueueWorld.create({ remote: () => accepts, config: { default_destination_rate_delay: '500ms' } })
    await acceptMany(world, 3)
    await world.advance(minutes(1))
    expect(world.tried('far.example')).toEqual([0, 0.5, 1])
  })
})

test.each([
  [50, [50, 50, 20]],
  [1, Array.from({ length: 120 }, () => 1)],
  [0, [120]],
])('120 recipients in one domain, recipient limit %i', async (limit, batches) => {
  const world = await QueueWorld.create({ remote: () => accepts, config: { default_destination_recipient_limit: `${limit}` } })
  await world.accept(Array.from({ length: 120 }, (_, i) => `ann${i}@far.example`))
  await world.rest()
  expect(world.attempts().map(({ recipients }) => recipients)).toEqual(batches)
})

test('a destination at its limit does not delay another', async () => {
  const far = ({ destination: name }: ModelledDelivery): Behaviour => ({ kind: 'accepts', takes: name === 'slow.example' ? HOUR : 0 })
  const world = await QueueWorld.create({ remote: far, config: { default_destination_concurrency_limit: '2' } })
  await acceptMany(world, 50, 'slow.example')
  await acceptMany(world, 50, 'quick.example')
  await world.advance(seconds(1))
  expect([world.attempts('slow.example').length, world.attempts('quick.example').length]).toEqual([2, 50])
})

describe('suspended destinations', () => {
  test('are not tried, use no step, and restart with the initial window', async () => {
    const far = ({ at }: ModelledDelivery): Behaviour => (at < seconds(100) ? busy : { kind: 'accepts', takes: seconds(1) })
    const world = await QueueWorld.create({ remote: far })
    await acceptMany(world, 60)
    await world.relay.scheduler.destinations.suspend('far.example', { by: 'operator', until: null, reason: null })
    await world.advance(hours(3))
    expect(world.attempts('far.example')).toHaveLength(60)
    expect(await world.recipient('ann7@far.example')).toMatchObject({ steps: 1, attempts: 1 })
    await world.relay.scheduler.destinations.resume('far.example', 'operator')
    await world.rest()
    expect(world.attempts('far.example')).toHaveLength(65)
    await world.advance(minutes(2))
    expect(world.attempts('far.example')).toHaveLength(120)
  })

  test('with an end are resumed at it, by an event that names the cause', async () => {
    const world = await QueueWorld.create({ remote: () => busy })
    await acceptMany(world, 1)
    const until = world.clock.now() + hours(2)
    await world.relay.scheduler.destinations.suspend('far.example', { by: 'operator', until, reason: 'rate limited' })
    expect(destination(world)).toMatchObject({ state: 'suspended', suspension: { by: 'operator', until, reason: 'rate limited' } })
    await world.advance(hours(2) - 1)
    expect(world.attempts('far.example')).toHaveLength(1)
    await world.advance(1)
    expect(world.attempts('far.example')).toHaveLength(2)
    expect(world.happened('resumed')).toMatchObject([{ destination: 'far.example', by: 'the end of its suspension' }])
    expect(await world.store.destinations()).toEqual([])
  })

  test('with an end stay suspended across a restart, and are resumed at once when it has passed', async () => {
    const world = await QueueWorld.create({ remote: () => busy })
    await acceptMany(world, 1)
    const until = world.clock.now() + hours(2)
    await world.relay.scheduler.destinations.suspend('far.example', { by: 'operator', until, reason: null })
    await world.relay.stop(0)
    await world.advance(hours(1))
    await world.restart()
    await world.advance(minutes(59))
    expect(world.attempts('far.example')).toHaveLength(1)
    await world.relay.stop(0)
    await world.advance(hours(1))
    await world.restart()
    await world.rest()
    expect(world.attempts('far.example')).toHaveLength(2)
  })

  test('are suspended until the later end when they are suspended again', async () => {
    const world = await QueueWorld.create({ remote: () => busy })
    await acceptMany(world, 1)
    const at = world.clock.now()
    await world.relay.scheduler.destinations.suspend('far.example', { by: 'operator', until: at + hours(1), reason: null })
    await world.relay.scheduler.destinations.suspend('far.example', { by: 'operator', until: at + hours(3), reason: null })
    await world.advance(hours(2))
    expect(world.attempts('far.example')).toHaveLength(1)
    await world.advance(hours(1))
    expect(world.attempts('far.example')).toHaveLength(2)
  })
})

test('a destination dead before a restart gets one probe after it', async () => {
  const world = await QueueWorld.create({ remote: () => refusing })
  await acceptMany(world, 30)
  const before = world.attempts('far.example').length
  await world.relay.stop(0)
  await world.restart()
  await world.rest()
  expect(world.attempts('far.example')).toHaveLength(before)
  await world.advance(seconds(300))
  expect(world.attempts('far.example')).toHaveLength(before + 1)
})
