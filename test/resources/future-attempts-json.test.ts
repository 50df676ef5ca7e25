/** The future of a message is what the queue does, if every attempt fails temporarily. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { futureJson } from '../../src/resources/future-attempts-json.ts'
import { recordsByName } from '../../src/presentation/recipient-status.ts'
import { MINUTE, SECOND } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { BEGINNING } from '../../src/testkit/virtual/virtual-clock.ts'
import { QueueWorld } from '../support/queue-world.ts'

const worlds = fc.record({
  retry_backoff: fc.constantFrom('doubling', 'age', 'fixed', 'thain', 'aws-decorrelated', 'table(90s,7m,11m,1h)', 'sidekiq'),
  retry_jitter: fc.constantFrom(0, 0.2),
  /** Minutes after the arrival at which the future is asked for. */
  asked: fc.integer({ min: 1, max: 600 }),
  seed: fc.nat(100_000),
})

async function futureIn(world: QueueWorld, id: string, seed: number, now = world.clock.now()) {
  const story = await world.reader.details(id)
  if (story === undefined) throw new Error('the message has left the queue')
  const { policies, notices } = world.relay
  const records = recordsByName(await world.reader.destinationRecords())
  const random = seededRandom(seed)
  return futureJson({ story, records, policies, notices, draw: (key) => random.draw(key), now, wall: world.clock.wall })[0]
}

test('the planned attempts are those that the queue makes afterwards, and the warning is sent when it is planned', async () => {
  await fc.assert(
    fc.asyncProperty(worlds, async ({ asked, seed, retry_backoff, retry_jitter }) => {
      const world = await QueueWorld.create({
        seed,
        remote: ({ destination }) =>
          destination === 'far.example' ? { kind: 'replies', reply: '451 4.7.1 Greylisted' } : { kind: 'accepts' },
        config: { retry_backoff, retry_jitter, delay_warning_time: ['4h'], maximal_queue_lifetime: '16h' },
      })
      const id = await world.accept(['ann@far.example'])
      await world.advance(asked * MINUTE)
      const made = world.attempts('far.example').length
      const future = await futureIn(world, id, seed)
      await world.advance(17 * 60 * MINUTE)
      const later = world.attempts('far.example').slice(made)
      expect(future?.attempts).toEqual(later.map(({ at }) => (BEGINNING + at) / SECOND))
      expect(future?.planned).toBe(later.length)
      const warned = world.arrivals('app@us.example').filter(({ content }) => content.includes('Action: delayed'))
      expect(warned).toHaveLength(1)
      const times = warned.map(({ at }) => (BEGINNING + at) / SECOND)
      expect(future?.warnings).toEqual(times.filter((at) => at > (BEGINNING + asked * MINUTE) / SECOND))
    }),
    { numRuns: 25, seed: 17, endOnFailure: true },
  )
})

test('mail on hold has no future', async () => {
  const world = await QueueWorld.create({ remote: () => ({ kind: 'replies', reply: '451 4.7.1 Greylisted' }) })
  const id = await world.accept(['ann@far.example'])
  await world.advance(MINUTE)
  await world.operate('hold', [id])
  expect(await futureIn(world, id, 1)).toBeUndefined()
})

test('a warning whose age has passed is planned for the attempt that is due now', async () => {
  const world = await QueueWorld.create({
    remote: ({ destination }) => (destination === 'far.example' ? { kind: 'replies', reply: '451 4.7.1 Greylisted' } : { kind: 'accepts' }),
    config: { delay_warning_time: ['4m', '1h'], retry_jitter: 0 },
  })
  const id = await world.accept(['ann@far.example'])
  await world.advance(MINUTE)
  const due = BEGINNING + 5 * MINUTE
  expect((await futureIn(world, id, 1))?.attempts[0]).toBe(due / SECOND)
  const future = await futureIn(world, id, 1, due)
  expect(future?.warnings).toHaveLength(2)
  await world.advance(6 * MINUTE)
  const warned = world.arrivals('app@us.example').map(({ at }) => (BEGINNING + at) / SECOND)
  expect(warned).toEqual([future?.warnings[0]])
})

test('a warning whose age has passed is planned for now while its destination is suspended', async () => {
  const world = await QueueWorld.create({
    remote: () => ({ kind: 'replies', reply: '451 4.7.1 Greylisted' }),
    config: { delay_warning_time: ['4m', '1h'], retry_jitter: 0 },
  })
  const id = await world.accept(['ann@far.example'])
  await world.advance(MINUTE)
  await world.relay.scheduler.destinations.suspend('far.example', { by: 'ops', until: BEGINNING + 120 * MINUTE, reason: null })
  const now = BEGINNING + 4 * MINUTE + 30 * SECOND
  expect((await futureIn(world, id, 1, now))?.warnings[0]).toBe(now / SECOND)
})
