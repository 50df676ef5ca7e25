/** A large message is relayed in chunks and is never in memory as a whole. With 300 MB: test/long. */
import { expect, test } from 'vitest'
import { relayLargeMessage } from '../support/large-message.ts'

test('a message of 150 MB is relayed within 128 MB of memory', async () => {
  const { growth, arrived } = await relayLargeMessage(150)
  expect(arrived).toBeGreaterThan(151)
  expect(growth).toBeLessThan(128)
})
