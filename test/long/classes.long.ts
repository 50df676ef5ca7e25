/** 200,000 bulk messages that are all due, and two fast ones per second: at one destination, and spread over 2,000. */
import { expect, test } from 'vitest'
import { SECOND } from '../../src/system/clock.ts'
import { besideBacklog } from '../support/bulk-backlog.ts'

test.each([1, 2_000])(
  'fast mail passes 200,000 bulk messages at %i destinations within a second',
  { timeout: 1_800_000 },
  async (destinations) => {
    const { p99, bulkPerSecond } = await besideBacklog({ bulk: 200_000, destinations, fast: 600 })
    console.log(`${destinations} destinations: p99 ${p99} ms, ${bulkPerSecond} bulk messages per second`)
    expect(p99).toBeLessThan(SECOND)
    expect(bulkPerSecond).toBeGreaterThan(0.9 * 40)
  },
)
