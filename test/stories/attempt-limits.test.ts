/** Limits of attempts: which attempts count, how mail ends at a limit, and that no restart counts an attempt twice. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compileRetryPolicy } from '../../src/backoff/retry-policy.ts'
import { plannedAttempts } from '../../src/planner/schedule.ts'
import { retryPlans } from '../../src/queries/retry-plans.ts'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import type { WorldOptions } from '../../src/testkit/options/world-options.ts'
import { days, MINUTE, SECOND } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { QueueWorld } from '../support/queue-world.ts'

const THREE = { maximal_delivery_attempts: 3 } as const
const BUSY = '450 4.2.1 busy'

async function busyWorld(options: WorldOptions = {}): Promise<World> {
  const world = await createWorld(options)
  world.destination('busy.example').defers('*', BUSY)
  return world
}

const timesOf = (world: World): readonly number[] => world.attempts('eve@busy.example').map(({ at }) => at)

describe.each(['memory', 'file'] as const)('with a queue in %s', (kind) => {
  test('the third failed step returns the message with its reply, status and rule; five flushes between cost no step', async () => {
    const store = kind === 'memory' ? kind : { directory: mkdtempSync(join(tmpdir(), 'deferd-attempts-')) }
    await using world = await busyWorld({ config: THREE, store })
    const id = await world.submit({ to: 'eve@busy.example' })
    await world.advance('1s')
    for (let n = 0; n < 5; n++) {
      await world.operate('flush', [id])
      await world.advance('10s')
    }
    await world.advance('1h')
    expect(timesOf(world)).toEqual([0, 1, 11, 21, 31, 41, 300, 900])
    expect(world.attempts('eve@busy.example').at(-1)).toMatchObject({ outcome: 'expired', status: '4.2.1', reply: BUSY })
    expect(world.mailbox('app@us.example').notices()).toMatchObject([
      { action: 'failed', recipients: [{ status: '4.2.1', diagnostic: expect.stringContaining(BUSY) as string }] },
    ])
    const story = await world.reader.details(id)
    expect(story).toMatchObject({ queue: 'gone', recipients: [{ state: 'expired', last: { limit: 'maximal_delivery_attempts = 3' } }] })
  })
})

test('a limit of 1 is one attempt', async () => {
  await using world = await busyWorld({ config: { maximal_delivery_attempts: 1 } })
  await world.submit({ to: 'eve@busy.example' })
  await world.advance('2h')
  expect(timesOf(world)).toEqual([0])
})

test('the smallest limit counts: of the parameter, of the destination, of the message; and the lifetime beside them', async () => {
  const attempts = async (general: number, own: number | undefined, of: number | undefined, maximal_queue_lifetime = '2d') => {
    const destination = own === undefined ? {} : { 'busy.example': { maximal_delivery_attempts: own } }
    await using world = await busyWorld({ config: { maximal_delivery_attempts: general, maximal_queue_lifetime, destination } })
    await world.submit({ to: 'eve@busy.example', ...(of === undefined ? {} : { maximumAttempts: of }) })
    await world.advance('2h')
    return timesOf(world).length
  }
  expect(await attempts(4, undefined, undefined)).toBe(4)
  expect(await attempts(4, 2, undefined)).toBe(2)
  expect(await attempts(2, 0, 3)).toBe(3)
  expect(await attempts(0, undefined, 3)).toBe(3)
  expect(await attempts(2, undefined, 3)).toBe(2)
  expect(await attempts(4, undefined, 3, '300s')).toBe(2)
})

test('mail that waits behind a dead destination makes no attempt', async () => {
  await using world = await createWorld({ config: THREE })
  world.destination('gone.example').isDownFor('10d')
  for (const name of ['ann', 'bob']) await world.submit({ to: `${name}@gone.example` })
  await world.advance('1d')
  const made = ['ann', 'bob'].flatMap((name) => world.attempts(`${name}@gone.example`).filter(({ outcome }) => outcome !== 'expired'))
  expect(made.length).toBeLessThanOrEqual(4)
})

test('a requeue begins again, with the limit of the message', async () => {
  await using world = await busyWorld()
  const id = await world.submit({ to: 'eve@busy.example', maximumAttempts: 2 })
  await world.advance('10s')
  await world.operate('requeue', [id])
  await world.advance('2h')
  expect(world.attempts('eve@busy.example').map(({ outcome }) => outcome)).toEqual(['deferred', 'deferred', 'expired'])
})

test('the queue makes the attempts that the planner has', async () => {
  for (const limit of [1, 3, 7]) {
    const world = await QueueWorld.create({
      remote: ({ destination }) => (destination === 'far.example' ? { kind: 'replies', reply: BUSY } : { kind: 'accepts' }),
      config: { maximal_delivery_attempts: limit, retry_backoff: 'aws-full-jitter', retry_jitter: 0.3 },
      seed: 5,
    })
    await world.accept(['ann@far.example'])
    await world.advance(days(3))
    const [first] = world.attempts('far.example')
    const { settings, retry } = world.relay.policies.for('far.example')
    const random = seededRandom(5)
    const planned = plannedAttempts({
      policy: retry,
      lifetime: settings.maximal_queue_lifetime,
      attempts: limit,
      jitter: settings.retry_jitter,
      draw: (what, step) => random.draw(`${what} ${first?.message} far.example ${step}`),
    })
    expect(world.tried('far.example')).toEqual(planned.map((at) => at / SECOND))
    const [plan] = retryPlans({}, world.relay.config).plans
    expect(plan).toMatchObject({ tries: { lifetime: limit }, limit })
  }
})

test('a schedule that has passed a lowered limit has one more attempt', () => {
  const policy = compileRetryPolicy({ retry_backoff: 'doubling', minimal: 5 * MINUTE, maximal: 60 * MINUTE })
  const from = { step: 6, age: 100 * MINUTE }
  expect(plannedAttempts({ policy, lifetime: days(2), attempts: 3, from })).toEqual([100 * MINUTE])
})

const lives = fc.record({
  limit: fc.integer({ min: 1, max: 5 }),
  takes: fc.constantFrom(0, 20 * SECOND),
  /** Seconds, and the interference after them. */
  turns: fc.array(fc.tuple(fc.integer({ min: 0, max: 900 }), fc.constantFrom('restart', 'crash', 'flush', 'nothing')), { maxLength: 8 }),
  seed: fc.nat(10_000),
})

test('each failed step counts once, whatever restarts, crashes and flushes lie between', async () => {
  await fc.assert(
    fc.asyncProperty(lives, async ({ limit, takes, turns, seed }) => {
      const world = await QueueWorld.create({
        remote: ({ destination }) => (destination === 'far.example' ? { kind: 'replies', reply: BUSY, takes } : { kind: 'accepts' }),
        config: { maximal_delivery_attempts: limit },
        seed,
      })
      const id = await world.accept(['ann@far.example'])
      for (const [after, turn] of turns) {
        await world.advance(after * SECOND)
        if (turn === 'restart') await world.restart()
        if (turn === 'crash') await world.crash()
        if (turn === 'flush') await world.operate('flush', [id])
      }
      await world.advance(days(1))
      const made = world.happened('attempted').filter(({ request }) => request.destination === 'far.example')
      const steps = made.filter(({ request }) => request.recipients.every(({ flushed }) => !flushed))
      expect(steps).toHaveLength(limit)
      expect(steps.at(-1)?.settled).toMatchObject([{ state: 'expired', last: { limit: `maximal_delivery_attempts = ${limit}` } }])
      expect(made.filter(({ settled }) => settled.some(({ state }) => state === 'expired'))).toHaveLength(1)
      expect(world.notices()).toHaveLength(1)
      await world.close()
    }),
    { numRuns: 20, seed: 35, endOnFailure: true },
  )
})
