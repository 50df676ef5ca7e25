/** An import that is killed at many moments, from the creation of the queue to the last commit. */
import { expect, test } from 'vitest'
import { killAndRepeat } from '../support/killed-import.ts'

test.each([
  [[1, 1, 1]],
  [[40_000, 200_000, 300_000, 400_000]],
  [[250_000, 500_000, 750_000, 1_000_000]],
  [[300_000, 350_000, 400_000, 450_000, 500_000, 550_000, 600_000]],
  [[900_000, 1_000_000, 1_100_000]],
])('killed at %j bytes', async (sizes) => {
  expect(await killAndRepeat(sizes)).toBeGreaterThan(0)
})
