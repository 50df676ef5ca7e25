/** Memory of a relay with waiting mail. test/long/memory.long.ts and `npm run bench -- memory` measure a daemon. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const SCRIPT = join(import.meta.dirname, '../support/waiting-memory.ts')
const MESSAGES = 3_000

test('a waiting destination takes less than 1,100 bytes, a queued message none', () => {
  const printed = execFileSync(process.execPath, ['--expose-gc', SCRIPT, String(MESSAGES)], { encoding: 'utf8' })
  const { few, messages, destinations } = JSON.parse(printed) as Record<'few' | 'messages' | 'destinations', number>
  expect((messages - few) / MESSAGES).toBeLessThan(150)
  expect((destinations - messages) / MESSAGES).toBeGreaterThan(200)
  expect((destinations - messages) / MESSAGES).toBeLessThan(1_100)
})
