/**
 * Attempt times, as in Postfix qmgr(8). deferd differs in two rules: waits double with each attempt, and a timer meets due times
 * exactly, without a periodic scan.
 */
import { describe, expect, test } from 'vitest'
import { clampedAge } from '../../src/backoff/plain.ts'
import { days, seconds } from '../../src/system/clock.ts'
import { type ModelledDelivery } from '../support/modelled-remote.ts'
import { QueueWorld } from '../support/queue-world.ts'

const refusing = () => ({ kind: 'refuses-connections' }) as const
const busy = () => ({ kind: 'replies', reply: '450 4.2.1 busy' }) as const
const age = { retry_backoff: 'age' }
const until = (attempts: readonly number[], at: number) => attempts.filter((time) => time <= at)

test('refused at once, mail is tried at 0, 300, 900, 2100, 4500, 8500, 12500 s', async () => {
  const world = await QueueWorld.create({ remote: refusing })
  await world.accept(['ann@far.example'])
  await world.advance(seconds(17_000))
  expect(world.tried('far.example')).toEqual([0, 300, 900, 2100, 4500, 8500, 12_500, 16_500])
})

test('with retry_backoff = age (Postfix’s formula): 0, 300, 600, 1200, 2400, 4800, 8800, 12800 s', async () => {
  const world = await QueueWorld.create({ remote: refusing, config: age })
  await world.accept(['ann@far.example'])
  await world.advance(seconds(13_000))
  expect(world.tried('far.example')).toEqual([0, 300, 600, 1200, 2400, 4800, 8800, 12_800])
})

test('after a first attempt that fails at age 0 the mail is due at 300', async () => {
  const world = await QueueWorld.create({ remote: refusing })
  await world.accept(['ann@far.example'])
  await world.rest()
  expect(await world.dueAt('ann@far.example')).toBe(300)
})

describe('a first attempt that takes 400 s to fail', () => {
  const slow = ({ at }: ModelledDelivery) => ({ kind: 'refuses-connections', takes: at === 0 ? seconds(400) : 0 }) as const
  test('is followed by the first wait, from its end', async () => {
    const world = await QueueWorld.create({ remote: slow })
    await world.accept(['ann@far.example'])
    await world.advance(seconds(1000))
    expect(world.tried('far.example')).toEqual([0, 700])
  })
  test('with retry_backoff = age: the mail is 400 s old, so it waits 400 s', async () => {
    const world = await QueueWorld.create({ remote: slow, config: age })
    await world.accept(['ann@far.example'])
    await world.advance(seconds(1000))
    expect(world.tried('far.example')).toEqual([0, 800])
  })
})

test.each([
  [2500, 2500],
  [3999, 3999],
  [4000, 4000],
  [100_000, 4000],
])('with retry_backoff = age, a failure at %i s is followed by a wait of %i s', (failedAt, wait) => {
  expect(clampedAge(seconds(failedAt), seconds(300), seconds(4000))).toBe(seconds(wait))
})

test.each([0, 10_000])('with a minimum of 600 above a maximum of 300, the minimum applies at age %i', (at) => {
  expect(clampedAge(seconds(at), seconds(600), seconds(300))).toBe(seconds(600))
})

test.each([
  ['age', [0, 10, 20, 40, 80, 120, 160, 200]],
  ['doubling', [0, 10, 30, 70, 110, 150, 190, 200]],
])('min 10, max 40, lifetime 200, %s: a failure notice follows the last attempt', async (retry_backoff, attempts) => {
  const far = ({ destination }: ModelledDelivery) => (destination === 'us.example' ? ({ kind: 'accepts' } as const) : refusing())
  const world = await QueueWorld.create({
    remote: far,
    config: {
      retry_backoff,
      minimal_backoff_time: '10s',
      maximal_backoff_time: '40s',
      maximal_queue_lifetime: '200s',
      bounce_queue_lifetime: '200s',
    },
  })
  await world.accept(['ann@far.example'])
  await world.advance(seconds(250))
  expect(world.tried('far.example')).toEqual(attempts)
  expect(world.tried('us.example')).toEqual([200])
})

test('mail is tried at its due time, not a millisecond before and on no grid', async () => {
  const world = await QueueWorld.create({ remote: refusing, config: { queue_run_delay: '60s', minimal_backoff_time: '123.457s' } })
  await world.accept(['ann@far.example'])
  await world.advance(123_456)
  expect(world.attempts('far.example')).toHaveLength(1)
  await world.advance(1)
  expect(world.tried('far.example')).toEqual([0, 123.457])
})

test('a flush at age 450 whose attempt fails changes nothing: the mail stays due at 900', async () => {
  const world = await QueueWorld.create({ remote: refusing })
  const id = await world.accept(['ann@far.example'])
  await world.advance(seconds(450))
  await world.operate('flush', [id])
  expect(world.tried('far.example')).toEqual([0, 300, 450])
  expect(await world.recipient('ann@far.example')).toMatchObject({ steps: 2, attempts: 3 })
  expect(await world.dueAt('ann@far.example')).toBe(900)
})

test('20 flushes within the first minute, all failing: the mail stays due at 300, on its first step', async () => {
  const world = await QueueWorld.create({ remote: refusing })
  const id = await world.accept(['ann@far.example'])
  for (let i = 0; i < 20; i++) {
    await world.advance(seconds(2.5))
    await world.operate('flush', [id])
  }
  expect(await world.recipient('ann@far.example')).toMatchObject({ steps: 1, attempts: 21 })
  expect(await world.dueAt('ann@far.example')).toBe(300)
})

test('a flush when the mail is overdue is followed by one wait of its current step', async () => {
  const world = await QueueWorld.create({ remote: refusing })
  const id = await world.accept(['ann@far.example'])
  await world.advance(seconds(400))
  await world.relay.scheduler.destinations.suspend('far.example', { by: 'operator', until: null, reason: null })
  await world.advance(seconds(1000))
  await world.operate('flush', [id])
  await world.relay.scheduler.destinations.resume('far.example', 'operator')
  await world.rest()
  expect(world.tried('far.example')).toEqual([0, 300, 1400])
  expect(await world.dueAt('ann@far.example')).toBe(2000)
})

test('a retry contacts only the destination that failed', async () => {
  const far = ({ destination }: ModelledDelivery) => (destination === 'busy.example' ? busy() : ({ kind: 'accepts' } as const))
  const world = await QueueWorld.create({ remote: far })
  await world.accept(['ann@well.example', 'bob@busy.example'])
  await world.advance(seconds(900))
  expect([world.tried('well.example'), world.tried('busy.example')]).toEqual([[0], [0, 300, 900]])
})

test('flushing one message tries it now and no others', async () => {
  const world = await QueueWorld.create({ remote: busy })
  const id = await world.accept(['ann@one.example'])
  await world.accept(['bob@two.example'])
  await world.advance(seconds(100))
  await world.operate('flush', [id])
  expect([world.tried('one.example'), world.tried('two.example')]).toEqual([[0, 100], [0]])
})

test('flushing all does not try held mail', async () => {
  const world = await QueueWorld.create({ remote: busy })
  const held = await world.accept(['ann@one.example'])
  await world.accept(['bob@two.example'])
  await world.rest()
  await world.operate('hold', [held])
  await world.advance(seconds(100))
  await world.operate('flush', 'all')
  expect([world.tried('one.example'), world.tried('two.example')]).toEqual([[0], [0, 100]])
})

test('new mail and retries alternate', async () => {
  const far = ({ destination, at }: ModelledDelivery) => {
    if (destination === 'slow.example') return { kind: 'accepts', takes: seconds(20) } as const
    return at < seconds(290) ? busy() : ({ kind: 'accepts', takes: seconds(1) } as const)
  }
  const world = await QueueWorld.create({ remote: far, config: { default_process_limit: '1' } })
  for (const name of ['d1', 'd2', 'd3']) await world.accept([`${name}@far.example`])
  await world.advance(seconds(290))
  await world.accept(['blocker@slow.example'])
  await world.advance(seconds(12))
  for (const name of ['i1', 'i2', 'i3']) await world.accept([`${name}@far.example`])
  await world.advance(seconds(60))
  const order = world.attempts('far.example').filter(({ at }) => at > seconds(290))
  // Messages 1–3 are the retries, 5–7 the new ones.
  expect(order.map(({ message }) => message)).toEqual([5, 1, 6, 2, 7, 3])
})

test('a full active queue takes the longest waiting mail when a place is free', async () => {
  const far = () => ({ kind: 'accepts', takes: seconds(10) }) as const
  const world = await QueueWorld.create({
    remote: far,
    config: { qmgr_message_active_limit: '2', qmgr_message_recipient_limit: '2', default_process_limit: '2' },
  })
  for (const name of ['a', 'b', 'c', 'd', 'e']) await world.accept([`${name}@${name}.example`])
  await world.advance(seconds(60))
  expect(world.attempts().map(({ at, message }) => [at / 1000, message])).toEqual([
    [0, 1],
    [0, 2],
    [10, 3],
    [10, 4],
    [20, 5],
  ])
})

test('no mail is tried after its lifetime, and all mail at the end of it', async () => {
  const world = await QueueWorld.create({ remote: refusing })
  await world.accept(['ann@far.example'])
  await world.advance(days(3))
  const attempts = world.tried('far.example')
  expect(attempts.at(-1)).toBe(days(2) / 1000)
  expect(until(attempts, days(2) / 1000)).toEqual(attempts)
})
