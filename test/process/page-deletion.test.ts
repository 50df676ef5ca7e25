/** A bulk deletion at the page is cancelled or killed in the middle; test/long/page.long.ts has it with 100,000 messages. */
import { test } from 'vitest'
import { cutDeletions } from '../support/page-deletion.ts'

// While mail is processed, a deletion of so many messages takes 1.3 seconds, so that it runs when it is cancelled.
const MESSAGES = 14_000

test('the undo of a deletion that is cancelled or killed restores exactly its messages', { timeout: 120_000 }, async () => {
  await cutDeletions(MESSAGES)
})
