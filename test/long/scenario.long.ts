/** The example of docs/choosing-retry-settings.md in full size: a rate-limited provider, a three-hour outage, 20,000 messages; two runs are equal. */
import { describe, expect, test } from 'vitest'
import { span } from '../../src/presentation/text.ts'
import { SECOND } from '../../src/system/clock.ts'
import { simulate } from '../support/simulate-command.ts'

const path = new URL('../../examples/rate-limited-provider.toml', import.meta.url).pathname
const run = (...args: readonly string[]) => simulate(['run', path, '--json', ...args])

test('everything is delivered, and other destinations are not delayed', { timeout: 180_000 }, async () => {
  const { out } = await run()
  expect(JSON.parse(out)).toMatchObject({
    delivered: 20_600,
    queued: 0,
    failed: 8333,
    notices: { failure: 0, delay: 304 },
    destinations: [
      { destination: 'provider.example', delivered: 20_000, deaths: 1 },
      { destination: 'customer.example', failed: 0, wait: { p95: 0.5, max: 0.5 } },
      { destination: 'partner.example', failed: 0, wait: { p95: 0.5, max: 0.5 } },
    ],
  })
  expect((await run()).out).toBe(out)
})

describe('the other settings of the guide', () => {
  test.each([
    ['minimal_backoff_time=1800s', 6601, '5h 36m'],
    ['default_destination_rate_delay=200ms', 6, '5h 41m'],
    ['default_destination_concurrency_limit=1', 6, '4h 35m'],
  ])('%s', { timeout: 90_000 }, async (setting, failed, last) => {
    const { out } = await run('-o', setting)
    const [provider] = (JSON.parse(out) as { destinations: readonly { failed: number; last_delivery: number }[] }).destinations
    expect([provider?.failed, span((provider?.last_delivery ?? 0) * SECOND)]).toEqual([failed, last])
  })
})
