/** The cost of a claim depends neither on the backlog of a closed destination nor on the size of the queue. */
import { expect, test } from 'vitest'
import { claimCost } from '../../support/claim-cost.ts'

test('a claim among 20,000 messages costs no more than twice a claim among 1,000', async () => {
  const small = await claimCost(1_000)
  // A machine that is busy with other things spoils a round, not all of them.
  const ratios = [await claimCost(20_000), await claimCost(20_000)].map((large) => large / small)
  expect(Math.min(...ratios)).toBeLessThan(2)
})
