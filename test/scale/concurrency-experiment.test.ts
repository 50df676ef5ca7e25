/**
 * The experiment of Postfix's SCHEDULER_README, through the real scheduler: 1,000 deliveries of two recipients, a second
 * for each, to a server that serves five at once and says 421 to the rest. What is refused waits its turn.
 */
import { describe, expect, test } from 'vitest'
import { minutes } from '../../src/mail/clock.ts'
import { seededRandom } from '../../src/mail/random.ts'
import { QueueWorld } from '../support/queue-world.ts'

const SERVED_AT_ONCE = 5
const DELIVERIES = 1_000

async function experiment(feedback: string) {
  const noise = seededRandom(1).stream('service')
  const world = await QueueWorld.create({
    far: ({ underWay }) =>
      underWay > SERVED_AT_ONCE ? { kind: 'too-busy' } : { kind: 'accepts', takes: Math.round(2_000 * (0.98 + 0.04 * noise())) },
    config: [
      `default_destination_concurrency_positive_feedback=${feedback}`,
      `default_destination_concurrency_negative_feedback=${feedback}`,
    ],
  })
  await Promise.all(Array.from({ length: DELIVERIES }, (_, i) => world.accept([`ann${i}@far.example`, `bob${i}@far.example`])))
  await world.advance(minutes(8))
  const attempts = world.attempts('far.example')
  const refused = attempts.filter(({ kind }) => kind === 'too-busy').length
  return { delivered: attempts.length - refused, refused: (100 * refused) / attempts.length, deaths: world.happened('died').length }
}

describe('a server with room for five', () => {
  test('refuses 16.5 % with a feedback of 1/concurrency, as it does to a Postfix', async () => {
    const { delivered, refused, deaths } = await experiment('1/concurrency')
    expect(Math.abs(refused - 16.5)).toBeLessThan(0.5)
    expect({ delivered, deaths }).toEqual({ delivered: DELIVERIES, deaths: 0 })
  })

  test('refuses between 30 and 40 % with a constant 1, and is never called dead', async () => {
    const { delivered, refused, deaths } = await experiment('1')
    expect(refused).toBeGreaterThan(30)
    expect(refused).toBeLessThan(40)
    expect({ delivered, deaths }).toEqual({ delivered: DELIVERIES, deaths: 0 })
  })
})
