/** The rows of docs/threat-model.md: their tests exist, and each parameter that opens a port has one. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { OPTIONS } from '../../src/config/options.ts'

const ROOT = join(import.meta.dirname, '../..')
const page = readFileSync(join(ROOT, 'docs/threat-model.md'), 'utf8')

const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (?:boundary|---)/.test(line))
  .map((line) => line.slice(1, -1).split(' | '))

const quoted = (text: string): readonly string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)

test.each(rows.map(([boundary = '', , , tests = '']) => [boundary.trim(), quoted(tests)] as const))('the tests of %s exist', (_, files) => {
  expect(files).not.toEqual([])
  for (const file of files) {
    const path = [`${file}.test.ts`, `${file}.long.ts`].find((name) => existsSync(join(ROOT, name)))
    expect(path, `${file} is a file of tests`).toBeDefined()
    expect(readFileSync(join(ROOT, path!), 'utf8')).toMatch(/\btest\b(?:\.\w+)*[(<]/)
  }
})

test('each parameter that opens a port has a row', () => {
  const opening = Object.keys(OPTIONS).filter((name) => name.endsWith('_listen'))
  expect(opening.length).toBe(3)
  const named = new Set(rows.flatMap(([boundary = '']) => quoted(boundary)))
  expect(opening.filter((name) => !named.has(name))).toEqual([])
})

test('it names no parameter that does not exist', () => {
  const parameters = quoted(page).filter((name) => /^(?:smtpd?|admin|http)_[a-z_]+$/.test(name))
  expect(parameters.filter((name) => !(name in OPTIONS))).toEqual([])
})
