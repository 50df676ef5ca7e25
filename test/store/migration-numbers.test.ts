/** Migrations of both engines: two with one number would be applied as one version, or not at all. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const MIGRATIONS = join(import.meta.dirname, '../../migrations')

test.each([
  ['SQLite', MIGRATIONS],
  ['PostgreSQL', join(MIGRATIONS, 'postgres')],
])('migrations of %s are numbered from 1 without gaps, each number once', (_engine, folder) => {
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql') && !file.endsWith('.finish.sql'))
  const numbers = files.map((file) => Number(file.slice(0, 4))).toSorted((a, b) => a - b)
  expect(numbers).toEqual(numbers.map((_, n) => n + 1))
})
