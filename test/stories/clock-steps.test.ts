import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, type Duration } from '../../src/system/clock.ts'
import { QueueWorld } from '../support/queue-world.ts'

const YEAR = 365 * DAY
const busy = { kind: 'replies' as const, reply: '450 4.2.1 busy' }
/** The attempts of a message in its first two hours, in seconds. */
const SCHEDULE = [0, 300, 900, 2100, 4500]

const deferring = () =>
  QueueWorld.create({
    remote: ({ destination }) => (destination === 'far.example' ? busy : { kind: 'accepts' }),
    config: { maximal_queue_lifetime: '2h' },
  })

test.each([10 * YEAR, -10 * YEAR, HOUR, -HOUR])('a wall clock set by %i ms changes no attempt and no expiry', async (step) => {
  const world = await deferring()
  await world.accept(['ann@far.example'])
  await world.advance(MINUTE)
  world.clock.step(step)
  await world.advance(HOUR)
  await world.crash()
  await world.advance(2 * HOUR)
  expect(world.tried('far.example')).toEqual([...SCHEDULE, 7200])
  expect(world.happened('expired')).toHaveLength(1)
})

test('any steps, stops and crashes leave the schedule as it is', async () => {
  const deed = fc.oneof(
    fc.record({ kind: fc.constant('step' as const), by: fc.integer({ min: -20 * YEAR, max: 20 * YEAR }) }),
    fc.constantFrom({ kind: 'restart' as const }, { kind: 'crash' as const }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(deed, fc.integer({ min: 1, max: 30 * MINUTE })), { maxLength: 6 }), async (deeds) => {
      const world = await deferring()
      await world.accept(['ann@far.example'])
      await world.rest()
      let elapsed: Duration = 0
      for (const [one, after] of deeds) {
        if (one.kind === 'step') world.clock.step(one.by)
        else await world[one.kind]()
        await world.advance(after)
        elapsed += after
      }
      await world.advance(Math.max(0, 3 * HOUR - elapsed))
      const near = world.tried('far.example').map(Math.round)
      expect(near).toEqual([...SCHEDULE, 7200])
    }),
    { numRuns: 25 },
  )
})

test('after a start of the machine with its clock at 1970, mail that waited is tried at once and keeps its lifetime', async () => {
  const world = await deferring()
  await world.accept(['ann@far.example'])
  await world.advance(20 * MINUTE)
  await world.restart()
  world.clock.step(-world.clock.now())
  world.clock.reboot()
  await world.crash()
  await world.advance(MINUTE)
  expect(world.tried('far.example')).toHaveLength(4)
  expect(world.happened('expired')).toEqual([])
})

test('mail that is overdue at a start is tried once before it expires', async () => {
  const world = await deferring()
  await world.accept(['ann@far.example'])
  await world.advance(20 * MINUTE)
  world.clock.reboot()
  world.clock.step(10 * YEAR)
  await world.crash()
  await world.advance(MINUTE)
  expect(world.tried('far.example')).toHaveLength(4)
  expect(world.happened('expired')).toHaveLength(1)
})
