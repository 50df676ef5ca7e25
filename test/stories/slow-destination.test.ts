/** One failing destination does not delay mail for others, independently of its backlog. With 500,000 messages: test/long. */
import { expect, test } from 'vitest'
import { medianLatencyOfOthers } from '../support/slow-destination.ts'

test.each(['tarpit', 'dead'] as const)('a %s destination with 20,000 due messages does not delay the others', async (failure) => {
  const without = await medianLatencyOfOthers(failure, 0)
  expect(await medianLatencyOfOthers(failure, 20_000)).toBeLessThan(1.05 * without)
})
