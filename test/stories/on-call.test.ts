/**
 * The on-call story with 40,000 deferred recipients. Its screens are kept in test/stories/golden; `vitest run --update=all`
 * writes them again. test/long/on-call.long.ts runs it with 40,000 messages.
 */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runOnCallStory } from '../support/on-call.ts'

/** Processor time of a command in ms, beyond the start of Node. */
const LIMIT = 2_000

test('cause, suspension, hold, deletion, restore and balance by the shell alone', async () => {
  const { screens, costs } = await runOnCallStory({ messages: 5_000, recipientsPerMessage: 8 })
  for (const width of [80, 120] as const) {
    await expect(screens[width]).toMatchFileSnapshot(join(import.meta.dirname, `golden/on-call-${width}.txt`))
    // Commands and filters are pasted as they are, and records of the audit log are complete.
    const isUncut = (line: string) => line.startsWith('$ ') || line.includes('--reply') || line.includes('  operator  ')
    expect(screens[width].split('\n').filter((line) => line.length > width && !isUncut(line))).toEqual([])
  }
  expect(costs.filter(({ cpu }) => cpu > LIMIT)).toEqual([])
})
