/** Memory of a backlog of many shares. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const SCRIPT = join(import.meta.dirname, '../support/backlog-memory.ts')

test('100,000 shares with mail that waits take less than 5 MB', () => {
  const printed = execFileSync(process.execPath, ['--expose-gc', SCRIPT], { encoding: 'utf8' })
  const { recipients, bytes } = JSON.parse(printed) as Record<'recipients' | 'bytes', number>
  expect(recipients).toBe(100_000)
  expect(bytes).toBeGreaterThan(2_000_000)
  expect(bytes).toBeLessThan(5_000_000)
})
