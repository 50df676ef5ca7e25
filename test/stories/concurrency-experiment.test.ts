/**
 * The experiment of Postfix's SCHEDULER_README, through the real scheduler: 1,000 deliveries of two recipients, a second
 * each, to a server that accepts five connections and greets others with 421. Refused mail waits for a slot.
 */
import { describe, expect, test } from 'vitest'
import { minutes } from '../../src/system/clock.ts'
import { seededRandom } from '../../src/system/random.ts'
import { QueueWorld } from '../support/queue-world.ts'

const SERVED_AT_ONCE = 5
const DELIVERIES = 1_000

async function experiment(feedback: string) {
  const noise = seededRandom(1).stream('service')
  const world = await QueueWorld.create({
    remote: ({ inFlight }) =>
      inFlight > SERVED_AT_ONCE ? { kind: 'too-busy' } : { kind: 'accepts', takes: Math.round(2_000 * (0.98 + 0.04 * noise())) },
    config: {
      default_destination_concurrency_positive_feedback: feedback,
      default_destination_concurrency_negative_feedback: feedback,
    },
  })
  await Promise.all(Array.from({ length: DELIVERIES }, (_, i) => world.accept([`ann${i}@far.example`, `bob${i}@far.example`])))
  await world.advance(minutes(8))
  const attempts = world.attempts('far.example')
  const refused = attempts.filter(({ kind }) => kind === 'too-busy').length
  return { delivered: attempts.length - refused, refused: (100 * refused) / attempts.length, deaths: world.happened('died').length }
}

describe('a server with five connections', () => {
  test('refuses 16.5 % with a feedback of 1/concurrency, as measured with Postfix', async () => {
    const { delivered, refused, deaths } = await experiment('1/concurrency')
    expect(Math.abs(refused - 16.5)).toBeLessThan(0.5)
    expect({ delivered, deaths }).toEqual({ delivered: DELIVERIES, deaths: 0 })
  })

  test('refuses between 30 and 40 % with a feedback of 1, and is never dead', async () => {
    const { delivered, refused, deaths } = await experiment('1')
    expect(refused).toBeGreaterThan(30)
    expect(refused).toBeLessThan(40)
    expect({ delivered, deaths }).toEqual({ delivered: DELIVERIES, deaths: 0 })
  })
})
