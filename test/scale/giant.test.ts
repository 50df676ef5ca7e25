/** A large message passes through in parts: it is never held in memory as a whole. With 300 MB: test/long. */
import { expect, test } from 'vitest'
import { relayGiant } from '../support/giant-story.ts'

test('150 MB are taken in and sent on within 128 MB of memory', async () => {
  const { growth, arrived } = await relayGiant(150)
  expect(arrived).toBeGreaterThan(151)
  expect(growth).toBeLessThan(128)
})
