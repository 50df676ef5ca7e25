/** 1,500 messages for a provider with a token bucket: drained within 1.25 × messages ÷ rate, with at most a fifth of the attempts refused. */
import { expect, test } from 'vitest'
import { drainScenario, RATE_LIMITS, REFUSALS } from '../support/rate-limit-scenario.ts'

for (const limit of RATE_LIMITS) {
  test.each(REFUSALS)(`1,500 messages at ${limit.name}, refused at %s with %s`, { timeout: 300_000 }, async (...refusal) => {
    const { delivered, time, refused, deaths } = await drainScenario(limit, refusal, { messages: 1_500 })
    expect({ delivered, deaths }).toEqual({ delivered: 1_500, deaths: 0 })
    expect(time).toBeLessThanOrEqual(1.25)
    expect(refused).toBeLessThanOrEqual(0.2)
  })
}

/** Wait in s after a refusal, minimal_backoff_time: one late refusal makes the whole time so much longer. */
const WAIT = 300

test.each(['20ms', '50ms', '200ms'])(
  '… with round trips of %s, apart from the wait of one late refusal',
  { timeout: 300_000 },
  async (latency) => {
    for (const limit of RATE_LIMITS) {
      for (const refusal of REFUSALS.slice(0, 2)) {
        const { time, refused } = await drainScenario(limit, refusal, { messages: 1_500, latency })
        const most = 1.25 + (latency === '200ms' ? WAIT / (1_500 / limit.perSecond) : 0)
        expect([time <= most, refused <= 0.2], `${limit.name} ${refusal.join(' ')}: ${time}, ${refused}`).toEqual([true, true])
      }
    }
  },
)
