/** A provider that limits messages per minute is obeyed; a provider that greylists is not taken for one. */
import { expect, test } from 'vitest'
import { MINUTE, seconds, type Duration } from '../../src/system/clock.ts'
import { QueueWorld } from '../support/queue-world.ts'
import type { Behaviour, Model } from '../support/modelled-remote.ts'

const LATER = '451 4.7.0 too many messages, try again later'

/** Accepts `perMinute` messages in each minute of its clock, and refuses the others at RCPT. */
function limitedTo(perMinute: number): Model {
  const accepted = new Map<number, number>()
  return ({ at }): Behaviour => {
    const minute = Math.floor(at / MINUTE)
    const count = accepted.get(minute) ?? 0
    if (count >= perMinute) return { kind: 'replies', reply: LATER, takes: 50 }
    accepted.set(minute, count + 1)
    return { kind: 'accepts', takes: 200 }
  }
}

/** Refuses each recipient until 5 minutes after its first attempt. */
function greylisting(reply: string): Model {
  const first = new Map<number, Duration>()
  return ({ at, request }): Behaviour => {
    const since = first.get(request.message.id) ?? at
    first.set(request.message.id, since)
    return at - since < 5 * MINUTE ? { kind: 'replies', reply, takes: 50 } : { kind: 'accepts', takes: 200 }
  }
}

interface Drained {
  readonly delivered: number
  readonly attempts: number
  /** Virtual minutes until the last message was delivered. */
  readonly minutes: number
  readonly notes: readonly string[]
}

async function drain(remote: Model, messages: number): Promise<Drained> {
  const world = await QueueWorld.create({ remote })
  for (let n = 0; n < messages; n++) await world.accept([`user${n}@provider.example`])
  await world.advance(3 * 60 * MINUTE)
  const arrivals = world.arrivals()
  return {
    delivered: arrivals.length,
    attempts: world.attempts().length,
    minutes: Math.max(...arrivals.map(({ at }) => at)) / MINUTE,
    notes: world.history.flatMap(({ event }) => (event.kind === 'note' ? [event.text] : [])),
  }
}

test('2,000 messages to a provider that accepts 100 a minute', async () => {
  const { delivered, attempts, minutes, notes } = await drain(limitedTo(100), 2_000)
  expect(delivered).toBe(2_000)
  expect(minutes).toBeLessThan(1.5 * 20)
  expect(attempts).toBeLessThan(1.2 * 2_000)
  expect(notes[0]).toMatch(
    /^destination provider\.example: message rate lowered to \d+\.\d per minute: 451 4\.7\.0 too many messages, try again later$/,
  )
})

test.each(['450 4.7.0 greylisted', '421 4.7.0 greylisted'])('a provider that greylists every recipient with %s', async (reply) => {
  const other = await drain(greylisting('450 4.2.0 greylisted'), 1_000)
  const { delivered, minutes, notes } = await drain(greylisting(reply), 1_000)
  expect(delivered).toBe(1_000)
  expect(minutes).toBeLessThan(1.1 * other.minutes)
  expect(notes).toEqual([])
})

test('the rate in force is shown, and the destination is throttled', async () => {
  const world = await QueueWorld.create({ remote: limitedTo(100) })
  for (let n = 0; n < 1_000; n++) await world.accept([`user${n}@provider.example`])
  await world.advance(6 * MINUTE)
  const status = world.relay.scheduler.destinations.status('provider.example')
  expect(status?.state).toBe('throttled')
  expect(status?.messageRate).toBeGreaterThan(50)
  expect(status?.messageRate).toBeLessThan(120)
})

test('nothing is learned where destination_adaptive_rate = no', async () => {
  const destination = { 'provider.example': { destination_adaptive_rate: 'no' } }
  const world = await QueueWorld.create({ remote: limitedTo(100), config: { destination } })
  for (let n = 0; n < 300; n++) await world.accept([`user${n}@provider.example`])
  await world.advance(3 * MINUTE)
  const status = world.relay.scheduler.destinations.status('provider.example')
  expect(status?.messageRate ?? null).toBeNull()
  expect(world.history.filter(({ event }) => event.kind === 'note')).toEqual([])
})

test.each(['resume', 'flush'] as const)('the rate ends when an operator orders %s', async (order) => {
  const world = await QueueWorld.create({ remote: limitedTo(100) })
  for (let n = 0; n < 300; n++) await world.accept([`user${n}@provider.example`])
  await world.advance(seconds(30))
  if (order === 'flush') await world.operate('flush', 'all')
  else {
    await world.relay.scheduler.destinations.suspend('provider.example', { by: 'ops', until: null, reason: null })
    await world.relay.scheduler.destinations.resume('provider.example', 'ops')
  }
  expect(world.relay.scheduler.destinations.status('provider.example')?.messageRate ?? null).toBeNull()
})
