/** Seeds 1 to 200; test/long has 2,000 seeds and the dense scenarios. */
import { expect, test } from 'vitest'
import { simulate } from './simulate.ts'
import { SOMETIMES } from './sometimes.ts'

test('seeds 1 to 200: no invariant is violated, and every sometimes-state is reached', { timeout: 300_000 }, async () => {
  const { reached, events } = await simulate(1, 200)
  expect(Object.keys(SOMETIMES).filter((state) => !reached.has(state))).toEqual([])
  expect(events).toBeGreaterThan(30_000)
})
