/** One sick destination does not hold up the others, however much waits for it. With 500,000 messages: test/long. */
import { expect, test } from 'vitest'
import { medianOfTheOthers } from '../support/tarpit-story.ts'

test.each(['tarpit', 'dead'] as const)('a %s with 20,000 due messages costs the others nothing', async (sickness) => {
  const without = await medianOfTheOthers(sickness, 0)
  expect(await medianOfTheOthers(sickness, 20_000)).toBeLessThan(1.05 * without)
})
