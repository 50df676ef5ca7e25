/** Seeds 1 to 20; states.test.ts has 200 with all sometimes-states, test/long 2,000 and the dense scenarios. */
import { expect, test } from 'vitest'
import { simulate } from './simulate.ts'

test('seeds 1 to 20: no invariant is violated', async () => {
  expect((await simulate(1, 20)).events).toBeGreaterThan(2_500)
})
