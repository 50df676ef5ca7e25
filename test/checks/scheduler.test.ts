/**
 * The numbered checks of Postfix's queue semantics, 80–95: how destinations are treated. 80, 84, 86 and 88 run with
 * both feedbacks set to 1, as Postfix has them. Mail of a dead destination does not cycle here but waits for a probe
 * (80, 81, 90 restated). 93 is void (no delivery agents of their own to be down), 94 is test/queue/preemption, 96 is
 * a check of the SMTP client (test/delivery).
 */
import { describe, expect, test } from 'vitest'
import { HOUR, hours, minutes, seconds } from '../../src/mail/clock.ts'
import { QueueWorld, type Reception, type Visit } from '../support/queue-world.ts'

const accepts: Reception = { kind: 'accepts' }
const busy: Reception = { kind: 'replies', reply: '450 4.2.1 busy' }
const refusing: Reception = { kind: 'refuses-connections' }
const tooBusy: Reception = { kind: 'too-busy' }
const postfixFeedback = ['default_destination_concurrency_positive_feedback=1', 'default_destination_concurrency_negative_feedback=1']

async function acceptMany(world: QueueWorld, count: number, domain = 'far.example') {
  await Promise.all(Array.from({ length: count }, (_, i) => world.accept([`ann${i}@${domain}`])))
  await world.rest()
}

const destination = (world: QueueWorld, name = 'far.example') => world.relay.wakes.snapshot().find((one) => one.destination === name)
const window = (world: QueueWorld, name?: string) => destination(world, name)?.window

describe('80: 20 messages to a destination that refuses at once', () => {
  const slowly: Reception = { kind: 'refuses-connections', takes: 10 }
  test('make five connections; after the third failure it is dead and the other 15 wait, untried', async () => {
    const world = await QueueWorld.create({ far: () => slowly, config: postfixFeedback })
    await acceptMany(world, 20)
    await world.advance(seconds(1))
    expect(world.attempts('far.example')).toHaveLength(5)
    expect(world.happened('died')).toMatchObject([{ at: 10, destination: 'far.example' }])
    const listed = world.reader.list({}, { after: 0, limit: 100, now: world.clock.now() })
    expect(listed.map(({ recipients }) => recipients[0]?.attempts)).toEqual([1, 1, 1, 1, 1, ...Array.from({ length: 15 }, () => 0)])
    expect(listed.every(({ recipients }) => recipients[0]?.state === 'waiting')).toBe(true)
  })
  test('with 1/concurrency, five failures and at most seven connections', async () => {
    const world = await QueueWorld.create({ far: () => slowly })
    await acceptMany(world, 20)
    await world.advance(seconds(1))
    expect(world.happened('died')).toHaveLength(1)
    expect(world.attempts('far.example').length).toBeLessThanOrEqual(7)
  })
})

test('81: mail that comes 100 s after the death waits; 300 s after it one probe is made, then at doubling intervals', async () => {
  const world = await QueueWorld.create({ far: () => refusing })
  await acceptMany(world, 20)
  const died = world.attempts('far.example').length
  await world.advance(seconds(100))
  await acceptMany(world, 1)
  await world.advance(seconds(199))
  expect(world.attempts('far.example')).toHaveLength(died)
  await world.advance(hours(4))
  expect(world.tried('far.example').slice(died)).toEqual([300, 900, 2100, 4500, 8500, 12_500])
})

describe('82', () => {
  test('initial concurrency 1: one refusal kills the destination', async () => {
    const world = await QueueWorld.create({ far: () => refusing, config: ['initial_destination_concurrency=1'] })
    await acceptMany(world, 20)
    expect(world.attempts('far.example')).toHaveLength(1)
  })
  test('cohort limit 0: 20 messages make 20 connections', async () => {
    const world = await QueueWorld.create({ far: () => refusing, config: ['default_destination_concurrency_failed_cohort_limit=0'] })
    await acceptMany(world, 20)
    expect(world.attempts('far.example')).toHaveLength(20)
    expect(world.happened('died')).toEqual([])
  })
})

test('83: after one refusal of a lone message and 300 idle seconds the window is as new', async () => {
  const world = await QueueWorld.create({
    far: ({ at }) => (at === 0 ? refusing : { kind: 'accepts', takes: 100 }),
    config: postfixFeedback,
  })
  await acceptMany(world, 1)
  expect(window(world)).toBe(3)
  await world.advance(seconds(301))
  expect(window(world)).toBe(6)
})

test('a message alone at its destination follows its schedule, however often it fails', async () => {
  const world = await QueueWorld.create({ far: () => refusing, config: ['initial_destination_concurrency=1'] })
  await acceptMany(world, 1)
  await world.advance(hours(4))
  expect(world.tried()).toEqual([0, 300, 900, 2100, 4500, 8500, 12_500])
  expect(world.happened('died')).toEqual([])
})

describe('84: answers widen the window', () => {
  const served: Reception = { kind: 'accepts', takes: seconds(1) }
  test('from 5 to 20 with feedback 1, and no further', async () => {
    const world = await QueueWorld.create({ far: () => served, config: postfixFeedback })
    await acceptMany(world, 200)
    expect(world.attempts('far.example')).toHaveLength(5)
    await world.advance(seconds(1))
    expect(window(world)).toBe(10)
    await world.advance(seconds(2))
    expect(window(world)).toBe(20)
    await world.advance(seconds(3))
    expect(window(world)).toBe(20)
  })
  test('to 6 after five answers with 1/concurrency', async () => {
    const world = await QueueWorld.create({ far: () => served })
    await acceptMany(world, 200)
    await world.advance(seconds(1))
    expect(window(world)).toBe(6)
  })
})

test('85: everybody answered 450 at RCPT: the window grows, the destination lives', async () => {
  const world = await QueueWorld.create({ far: () => ({ ...busy, takes: seconds(1) }), config: postfixFeedback })
  await acceptMany(world, 60)
  await world.advance(seconds(1))
  expect(window(world)).toBe(10)
  expect(world.happened('died')).toEqual([])
})

test('86: 421 in every banner, ten messages: dead after three', async () => {
  const world = await QueueWorld.create({ far: () => ({ ...tooBusy, takes: 10 }), config: postfixFeedback })
  await acceptMany(world, 10)
  await world.advance(seconds(5))
  expect(world.attempts('far.example')).toHaveLength(5)
  expect(world.happened('died')).toHaveLength(1)
})

test('88: a failing name server kills the destination after three, for 300 s', async () => {
  const world = await QueueWorld.create({ far: () => ({ ...refusing, takes: 10 }), config: postfixFeedback })
  await acceptMany(world, 8)
  await world.advance(seconds(5))
  expect(destination(world)?.deadUntil).toBe(world.happened('died')[0]!.until)
  expect(world.happened('died')[0]!.until - world.clock.now()).toBe(seconds(300) + 10 - seconds(5))
})

test('89: a straggler that is served revives the destination, with as many deliveries as are still running', async () => {
  let visits = 0
  const far = (): Reception => (++visits <= 3 ? { ...refusing, takes: 10 } : { kind: 'accepts', takes: seconds(1) })
  const world = await QueueWorld.create({ far, config: postfixFeedback })
  await acceptMany(world, 20)
  await world.advance(20)
  expect(world.happened('died')).toHaveLength(1)
  await world.advance(seconds(1))
  expect(world.happened('revived')).toHaveLength(1)
  await world.advance(minutes(20))
  expect(new Set(world.attempts('far.example').map(({ message }) => message)).size).toBe(20)
})

describe('90: a flush while destinations are dead', () => {
  const dead = async () => {
    const world = await QueueWorld.create({ far: () => refusing })
    const first = await world.accept(['ann@one.example'])
    await acceptMany(world, 10, 'one.example')
    await acceptMany(world, 10, 'two.example')
    expect(world.happened('died')).toHaveLength(2)
    return { world, first, tried: { one: world.attempts('one.example').length, two: world.attempts('two.example').length } }
  }
  test('of all, connects again everywhere at once', async () => {
    const { world, tried } = await dead()
    await world.order('flush', 'all')
    expect(world.attempts('one.example').length).toBeGreaterThan(tried.one)
    expect(world.attempts('two.example').length).toBeGreaterThan(tried.two)
  })
  test('of one message, only at its destinations', async () => {
    const { world, first, tried } = await dead()
    await world.order('flush', [first])
    expect(world.attempts('one.example').length).toBeGreaterThan(tried.one)
    expect(world.attempts('two.example')).toHaveLength(tried.two)
  })
})

describe('91: pauses between deliveries', () => {
  test('a rate delay of 10 s, deliveries of 2 s: starts 12 s apart, never two at once', async () => {
    const far = ({ underWay }: Visit): Reception => {
      expect(underWay).toBe(1)
      return { kind: 'accepts', takes: seconds(2) }
    }
    const world = await QueueWorld.create({ far, config: ['default_destination_rate_delay=10s'] })
    await acceptMany(world, 4)
    await world.advance(minutes(2))
    expect(world.tried('far.example')).toEqual([0, 12, 24, 36])
  })
  test('12 deliveries a minute: starts 5 s apart, side by side when they take longer', async () => {
    const world = await QueueWorld.create({
      far: () => ({ kind: 'accepts', takes: seconds(7) }),
      config: ['default_destination_message_rate_limit=12'],
    })
    await acceptMany(world, 4)
    await world.advance(minutes(2))
    expect(world.tried('far.example')).toEqual([0, 5, 10, 15])
  })
  test('a transport rate delay of 10 s: one delivery at a time, wherever they go', async () => {
    const world = await QueueWorld.create({
      far: () => ({ kind: 'accepts', takes: seconds(2) }),
      config: ['default_transport_rate_delay=10s'],
    })
    for (const name of ['one', 'two', 'three']) await world.accept([`ann@${name}.example`])
    await world.advance(minutes(2))
    expect(world.tried()).toEqual([0, 12, 24])
  })
  test('half a second is a pause too', async () => {
    const world = await QueueWorld.create({ far: () => accepts, config: ['default_destination_rate_delay=500ms'] })
    await acceptMany(world, 3)
    await world.advance(minutes(1))
    expect(world.tried('far.example')).toEqual([0, 0.5, 1])
  })
})

test.each([
  [50, [50, 50, 20]],
  [1, Array.from({ length: 120 }, () => 1)],
  [0, [120]],
])('92: 120 recipients in one domain, recipient limit %i', async (limit, batches) => {
  const world = await QueueWorld.create({ far: () => accepts, config: [`default_destination_recipient_limit=${limit}`] })
  await world.accept(Array.from({ length: 120 }, (_, i) => `ann${i}@far.example`))
  await world.rest()
  expect(world.attempts().map(({ recipients }) => recipients)).toEqual(batches)
})

test('95: a destination at its limit does not hold up another', async () => {
  const far = ({ destination: name }: Visit): Reception => ({ kind: 'accepts', takes: name === 'slow.example' ? HOUR : 0 })
  const world = await QueueWorld.create({ far, config: ['default_destination_concurrency_limit=2'] })
  await acceptMany(world, 50, 'slow.example')
  await acceptMany(world, 50, 'quick.example')
  await world.advance(seconds(1))
  expect([world.attempts('slow.example').length, world.attempts('quick.example').length]).toEqual([2, 50])
})

describe('suspended destinations', () => {
  test('are not tried, burn no step, and start again gently', async () => {
    const far = ({ at }: Visit): Reception => (at < seconds(100) ? busy : { kind: 'accepts', takes: seconds(1) })
    const world = await QueueWorld.create({ far })
    await acceptMany(world, 60)
    await world.relay.scheduler.suspend('far.example', 'operator')
    await world.advance(hours(3))
    expect(world.attempts('far.example')).toHaveLength(60)
    expect(world.recipient('ann7@far.example')).toMatchObject({ steps: 1, attempts: 1 })
    await world.relay.scheduler.resume('far.example', 'operator')
    await world.rest()
    expect(world.attempts('far.example')).toHaveLength(65)
    await world.advance(minutes(2))
    expect(world.attempts('far.example')).toHaveLength(120)
  })
})

test('a destination dead before a restart is probed after it, not stormed', async () => {
  const world = await QueueWorld.create({ far: () => refusing })
  await acceptMany(world, 30)
  const before = world.attempts('far.example').length
  await world.relay.stop(0)
  await world.restart()
  await world.rest()
  expect(world.attempts('far.example')).toHaveLength(before)
  await world.advance(seconds(300))
  expect(world.attempts('far.example')).toHaveLength(before + 1)
})
