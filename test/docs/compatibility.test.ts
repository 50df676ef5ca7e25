/** docs/compatibility.md names tests that exist. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')

test('each promise has tests that exist', () => {
  const [, table = ''] = readFileSync(join(ROOT, 'docs/compatibility.md'), 'utf8').split('| promise')
  const rows = table.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| -'))
  expect(rows.length).toBeGreaterThan(5)
  for (const row of rows) {
    const files = [...row.matchAll(/`(test\/[^`]+)`/g)].map(([, file = '']) => file)
    expect(files, row).not.toEqual([])
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([])
  }
})
