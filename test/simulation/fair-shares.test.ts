/** Worlds in which deliveries are shared fairly keep the invariants of all others. */
import { expect, test } from 'vitest'
import { simulate } from './simulate.ts'

test.each(['sparse', 'dense'] as const)('fair shares violate no invariant in %s worlds', async (density) => {
  const { events } = await simulate(1, 10, density, (scenario) => ({
    ...scenario,
    config: { ...scenario.config, fair_share: 'yes', share_key: 'sender_domain, client' },
  }))
  expect(events).toBeGreaterThan(1_000)
})
