/** The queue itself and the adaptive rate, against a provider that limits messages per second. test/long/rate-limits.long.ts has all limits. */
import { expect, test } from 'vitest'
import { drainScenario, RATE_LIMITS } from '../support/rate-limit-scenario.ts'

const [fivePerSecond, onePerSecond] = RATE_LIMITS

test('a provider that takes five messages a second gets them', async () => {
  if (fivePerSecond === undefined) throw new Error('no limit')
  const { delivered, time, refused, deaths } = await drainScenario(fivePerSecond, ['rcpt', '450 4.7.28 rate'], { messages: 400 })
  expect({ delivered, deaths }).toEqual({ delivered: 400, deaths: 0 })
  // The first refusals are tried again after 5 minutes, so that the last delivery of so few messages tells no rate.
  expect(time * 80).toBeLessThan(340)
  expect(refused).toBeLessThan(0.05)
})

test('a provider that accepts one message a second is not taken for dead, although it refuses the second one at MAIL', async () => {
  if (onePerSecond === undefined) throw new Error('no limit')
  const { delivered, time, refused, deaths } = await drainScenario(onePerSecond, ['mail', '421 4.7.0 slow down'], { messages: 400 })
  expect({ delivered, deaths }).toEqual({ delivered: 400, deaths: 0 })
  expect(time).toBeLessThan(1.4)
  expect(refused).toBeLessThan(0.05)
})
