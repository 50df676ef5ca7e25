/** Picking work costs the same however much waits behind a destination that cannot be asked, and however much waits at all. */
import { expect, test } from 'vitest'
import { claimCost } from '../support/claim-cost.ts'

test('a claim among 50,000 messages costs no more than twice a claim among 1,000', async () => {
  const small = await claimCost(1_000)
  // A machine that is busy with other things spoils a round, not all of them.
  const ratios = [await claimCost(50_000), await claimCost(50_000)].map((large) => large / small)
  expect(Math.min(...ratios)).toBeLessThan(2)
})
