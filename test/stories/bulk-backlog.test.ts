/** Fast mail beside a backlog of bulk mail starts at once, and the backlog goes on. With 200,000 messages: test/long. */
import { expect, test } from 'vitest'
import { SECOND } from '../../src/system/clock.ts'
import { besideBacklog } from '../support/bulk-backlog.ts'

test.each([
  [600, 1],
  [2_500, 200],
])('fast mail passes %i bulk messages at %i destinations within a second', { timeout: 600_000 }, async (bulk, destinations) => {
  const { p99, bulkPerSecond } = await besideBacklog({ bulk, destinations, fast: 10 })
  expect(p99).toBeLessThan(SECOND)
  // The window of one destination gives 40 deliveries per second.
  expect(bulkPerSecond).toBeGreaterThan(30)
})
