/**
 * Expiry, as in Postfix qmgr(8). In deferd, the last attempt falls on the expiry itself.
 */
import { describe, expect, test } from 'vitest'
import { days, hours, minutes, seconds } from '../../src/system/clock.ts'
import { StoreUnavailable } from '../../src/store/queue-store.ts'
import { intercepted } from '../../src/store/methods.ts'
import { openMemoryStore } from '../../src/store/memory/memory-store.ts'
import { type Behaviour, type ModelledDelivery } from '../support/modelled-remote.ts'
import { QueueWorld } from '../support/queue-world.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'

const accepts: Behaviour = { kind: 'accepts' }
const busy: Behaviour = { kind: 'replies', reply: '450 4.2.1 busy' }
const refusing: Behaviour = { kind: 'refuses-connections' }

/** The sender's domain accepts mail; the others behave as the test defines. */
const far = (others: (visit: ModelledDelivery) => Behaviour) => (visit: ModelledDelivery) =>
  visit.destination === 'us.example' ? accepts : others(visit)
const fiveDays = { maximal_queue_lifetime: '5d', bounce_queue_lifetime: '5d' }

describe('the last attempt is made when the lifetime ends', () => {
  test('a failure one second before defers, one at the end expires', async () => {
    const world = await QueueWorld.create({ remote: far(() => busy), config: fiveDays })
    await world.accept(['ann@far.example'])
    await world.advance(days(5) - 1)
    expect(await world.recipient('ann@far.example')).toMatchObject({ state: 'waiting' })
    await world.advance(1)
    expect(await world.recipient('ann@far.example')).toBeUndefined()
    expect(world.tried('far.example').at(-1)).toBe(432_000)
    expect(world.happened('expired')).toHaveLength(1)
  })
})

test('with the defaults mail is tried for two days, 48 times, the last time at 172800 s', async () => {
  const world = await QueueWorld.create({ remote: far(() => busy) })
  await world.accept(['ann@far.example'])
  await world.advance(days(3))
  const attempts = world.tried('far.example')
  expect([attempts.length, attempts.at(-2), attempts.at(-1)]).toEqual([48, 172_500, 172_800])
})

test('lifetime 0: one attempt, and the notice at once', async () => {
  const world = await QueueWorld.create({ remote: far(() => busy), config: { maximal_queue_lifetime: '0' } })
  await world.accept(['ann@far.example'])
  await world.rest()
  expect(world.tried('far.example')).toEqual([0])
  expect(world.notices()).toMatchObject([{ action: 'failed' }])
})

test('mail found at an age of ten days is tried once more; delivered, there is no notice', async () => {
  const world = await QueueWorld.create({ remote: far(({ at }) => (at < days(1) ? busy : accepts)) })
  await world.accept(['ann@far.example', 'bob@far.example'])
  await world.advance(minutes(1))
  await world.crash(days(10))
  await world.advance(minutes(1))
  expect(world.arrivals('ann@far.example')).toHaveLength(1)
  expect(world.happened('expired')).toEqual([])
  expect(world.notices()).toEqual([])
})

test('mail from <> has bounce_queue_lifetime, and expires without a notice', async () => {
  const world = await QueueWorld.create({ remote: far(() => busy), config: { maximal_queue_lifetime: '5d', bounce_queue_lifetime: '1d' } })
  await world.accept(['ann@far.example'], { sender: '' })
  await world.advance(days(2))
  expect(world.tried('far.example').at(-1)).toBe(86_400)
  expect(world.happened('removed')).toHaveLength(1)
  expect(world.happened('notice-sent')).toEqual([])
})

test('mail from double-bounce@ has maximal_queue_lifetime', async () => {
  const config = { maximal_queue_lifetime: '5d', bounce_queue_lifetime: '1d', myhostname: 'us.example' }
  const world = await QueueWorld.create({ remote: far(() => busy), config })
  await world.accept(['ann@far.example'], { sender: 'double-bounce@us.example' })
  await world.advance(days(2))
  expect(await world.recipient('ann@far.example')).toBeDefined()
})

test('the notice about expired mail quotes the last reply with its status', async () => {
  const world = await QueueWorld.create({ remote: far(() => busy) })
  await world.accept(['ann@far.example'])
  await world.advance(days(2))
  expect(world.notices()).toMatchObject([
    {
      recipients: [
        {
          recipient: 'ann@far.example',
          action: 'failed',
          status: '4.2.1',
          diagnosticType: 'smtp',
          diagnostic: '450 4.2.1 busy',
          remoteMta: 'far',
        },
      ],
    },
  ])
})

test('refused connections: status 4.4.1, a local diagnostic, no Remote-MTA', async () => {
  const world = await QueueWorld.create({ remote: far(() => refusing) })
  await world.accept(['ann@far.example'])
  await world.advance(days(2))
  const recipient = world.notices()[0]?.recipients[0]
  expect(recipient).toMatchObject({ action: 'failed', status: '4.4.1', diagnosticType: 'x-deferd' })
  expect(recipient?.remoteMta).toBeUndefined()
})

describe('mail held from age 0 to six days', () => {
  const held = async () => {
    const world = await QueueWorld.create({ remote: far(({ at }) => (at === 0 ? { ...busy, takes: 1 } : busy)), config: fiveDays })
    const id = await world.accept(['ann@far.example'])
    await world.operate('hold', [id])
    await world.advance(days(6))
    expect(await world.recipient('ann@far.example')).toMatchObject({ state: 'parked' })
    return { world, id }
  }
  test('released, expires with its next failure', async () => {
    const { world, id } = await held()
    await world.operate('release', [id])
    await world.rest()
    expect(world.attempts('far.example')).toHaveLength(2)
    expect(world.notices()).toMatchObject([{ action: 'failed' }])
  })
  test('requeued, restarts its schedule', async () => {
    const { world, id } = await held()
    await world.operate('requeue', [id])
    await world.rest()
    expect(world.notices()).toEqual([])
    expect(await world.dueAt('ann@far.example')).toBe(days(6) / 1000 + 300)
  })
})

test('of two recipients left one is delivered by the last attempt: only the other is in the notice', async () => {
  const world = await QueueWorld.create({
    remote: far(({ destination, at }) => (destination === 'late.example' && at === days(2) ? accepts : busy)),
  })
  await world.accept(['ann@late.example', 'bob@never.example'])
  await world.advance(days(2))
  expect(world.notices().map((notice) => notice.recipients.map((one) => one.recipient))).toEqual([['bob@never.example']])
})

describe('forced expiry', () => {
  test('waits until the mail is due; then no connection, the earlier reason, and force-expired in the log', async () => {
    const world = await QueueWorld.create({ remote: far(() => busy) })
    const id = await world.accept(['ann@far.example'])
    await world.advance(seconds(100))
    await world.operate('expire', [id])
    expect(world.notices()).toEqual([])
    await world.advance(seconds(200))
    expect(world.tried('far.example')).toEqual([0])
    expect(world.notices()).toMatchObject([{ recipients: [{ status: '4.2.1', diagnostic: '450 4.2.1 busy' }] }])
    expect(world.happened('expired')).toMatchObject([{ forced: true }])
  })

  test('without an attempt: 4.7.0, administratively expired', async () => {
    const world = await QueueWorld.create({ remote: far(() => busy) })
    await world.relay.scheduler.destinations.suspend('far.example', { by: 'operator', until: null, reason: null })
    const id = await world.accept(['ann@far.example'])
    await world.operate('expire', [id])
    await world.relay.scheduler.destinations.resume('far.example', 'operator')
    await world.rest()
    expect(world.attempts('far.example')).toEqual([])
    expect(world.notices()).toMatchObject([{ recipients: [{ status: '4.7.0', diagnostic: 'message is administratively expired' }] }])
  })

  test('held mail stays held; released, it is returned', async () => {
    const world = await QueueWorld.create({ remote: far(() => busy) })
    const id = await world.accept(['ann@far.example'])
    await world.rest()
    await world.operate('hold', [id])
    await world.operate('expire', [id])
    await world.advance(hours(5))
    expect(world.notices()).toEqual([])
    await world.operate('release', [id])
    await world.rest()
    expect(world.notices()).toMatchObject([{ action: 'failed' }])
  })
})

test('while the notice cannot be queued it stays due; finally there is one notice', async () => {
  const { store, reader } = openMemoryStore()
  let full = true
  const tried: unknown[] = []
  const failing = intercepted(store, (method, args, perform) => {
    if (method !== 'report') return perform()
    tried.push(args)
    return full ? Promise.reject(new StoreUnavailable('database or disk is full')) : perform()
  })
  const world = await QueueWorld.create({
    remote: far(() => ({ kind: 'replies', reply: '550 5.1.1 no such user' })),
    queue: { store: failing, reader },
  })
  await world.accept(['ann@far.example'])
  await world.advance(minutes(10))
  expect(tried.length).toBeGreaterThan(1)
  expect(world.notices()).toEqual([])
  full = false
  await world.advance(minutes(10))
  expect(world.notices()).toMatchObject([{ recipients: [{ recipient: 'ann@far.example', status: '5.1.1' }] }])
  expect(world.tried('far.example')).toEqual([0])
})

test('mail waiting at a dead destination expires at the end of its lifetime, not later', async () => {
  const world = await QueueWorld.create({
    remote: far(() => refusing),
    config: { maximal_queue_lifetime: '1h', bounce_queue_lifetime: '1h', maximal_backoff_time: '2h' },
  })
  for (let i = 0; i < 50; i++) await world.accept([`ann${i}@far.example`])
  await world.advance(hours(1) - 1)
  expect(world.happened('expired')).toEqual([])
  await world.advance(seconds(1))
  expect(world.happened('expired')).toHaveLength(50)
  expect(world.notices()).toHaveLength(50)
  expect(world.attempts('far.example').length).toBeLessThan(20)
})

test('when more mail expires at once than can be tried, mail that cannot start within minimal_backoff_time expires untried', async () => {
  const tarpit: Behaviour = { kind: 'accepts', takes: hours(2) }
  const world = await QueueWorld.create({
    remote: far(({ at }) => (at < minutes(1) ? busy : tarpit)),
    config: {
      maximal_queue_lifetime: '2h',
      bounce_queue_lifetime: '2h',
      retry_backoff: 'table(3h)',
      qmgr_message_active_limit: '100',
      qmgr_message_recipient_limit: '100',
    },
  })
  for (let i = 0; i < 500; i++) await world.accept([`ann${i}@far.example`])
  await world.advance(hours(2) + seconds(1))
  // The first are being tried; the rest have their chance for 300 s.
  expect(world.happened('expired')).toEqual([])
  await world.advance(seconds(302))
  const tried = world.attempts('far.example').filter(({ at }) => at >= hours(2)).length
  expect(tried).toBeGreaterThanOrEqual(5)
  // Recipients in the active queue wait for a slot a little longer than those in the store.
  await world.advance(hours(2))
  expect(
    world.happened('expired').length + world.attempts('far.example').filter(({ at, kind }) => at >= hours(2) && kind === 'accepts').length,
  ).toBe(500)
  expect(await world.reader.list(ANY_MESSAGE, { after: 0, limit: 1 })).toEqual([])
})

test('after ten days of standstill, mail at a dead destination waits for the probe before it expires', async () => {
  const world = await QueueWorld.create({ remote: far(({ at }) => (at < minutes(10) ? refusing : accepts)) })
  for (let i = 0; i < 20; i++) await world.accept([`ann${i}@far.example`])
  await world.advance(minutes(1))
  expect(world.happened('died')).toHaveLength(1)
  await world.crash(days(10))
  await world.advance(minutes(1))
  expect(world.happened('expired')).toEqual([])
  expect(
    new Set(
      world
        .attempts('far.example')
        .filter(({ kind }) => kind === 'accepts')
        .map(({ message }) => message),
    ).size,
  ).toBe(20)
})
