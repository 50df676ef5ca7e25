import { expect, test } from 'vitest'
import { runOnCallStory } from '../support/on-call.ts'

/** ON_CALL_MESSAGES=1000000 shows the costs with a million messages. */
const MESSAGES = Number(process.env['ON_CALL_MESSAGES'] ?? 40_000)
/** Processor time of a command in ms with 40,000 messages, beyond the start of Node. */
const LIMIT = 2_000

test('the on-call story with a queue of many messages', { timeout: 3_600_000 }, async () => {
  const { costs } = await runOnCallStory({ messages: MESSAGES, recipientsPerMessage: 1 })
  process.stdout.write(costs.map(({ command, cpu }) => `${String(Math.round(cpu)).padStart(8)} ms  ${command}\n`).join(''))
  if (MESSAGES <= 40_000) expect(costs.filter(({ cpu }) => cpu > LIMIT)).toEqual([])
})
