/** Worlds in which deliveries are shared fairly keep the invariants of all others, and the bounds of waits. test/long has 2,000 seeds. */
import { expect, test } from 'vitest'
import { run } from './run.ts'
import { fairlyShared } from './shares/shared-scenario.ts'
import { simulate } from './simulate.ts'
import { generatedBy } from './generator.ts'

test.each(['sparse', 'dense'] as const)('fair shares violate no invariant in %s worlds', async (density) => {
  const { events } = await simulate(1, 10, density, (scenario) => ({
    ...scenario,
    config: { ...scenario.config, fair_share: 'yes', share_key: 'sender_domain, client' },
  }))
  expect(events).toBeGreaterThan(1_000)
})

test('seeds 1 to 12 of shares and classes that compete: parts are fair, and waits are bounded', async () => {
  expect((await simulate(1, 12, 'sparse', fairlyShared)).events).toBeGreaterThan(6_000)
})

test('the scenarios have several shares, classes, and each kind of shortage', async () => {
  const scenarios = Array.from({ length: 40 }, (_, n) => fairlyShared(generatedBy(n + 1)))
  const kinds = new Set(scenarios.map(({ shares }) => `${shares?.short} ${Object.keys(shares?.classes ?? {}).length}`))
  expect(kinds.size).toBe(9)
  const [first] = scenarios
  if (first === undefined) throw new Error('no scenario')
  const { history } = await run(first)
  const shares = history.trace.flatMap(({ event }) =>
    'method' in event && event.method === 'enqueue' ? [(event as unknown as { message: { share?: string } }).message.share] : [],
  )
  expect(new Set(shares)).toEqual(new Set(Object.keys(first.shares?.weights ?? {})))
})
