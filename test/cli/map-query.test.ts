import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Operator } from '../support/operator.ts'

let operator: Operator
let folder: string

beforeAll(() => {
  operator = new Operator()
  folder = mkdtempSync(join(tmpdir(), 'deferd-maps-'))
  writeFileSync(join(folder, 'canonical'), 'Ann@a.test x@y.test\n')
  writeFileSync(
    join(folder, 'deferd.toml'),
    `canonical_maps = "texthash:${folder}/canonical"\n[transport_maps]\n"a.test" = "smtp:[b.test]"\n`,
  )
})
afterAll(() => {
  operator.leave()
  rmSync(folder, { recursive: true })
})

const query = (...args: readonly string[]) => operator.run(['map', 'query', '--config', join(folder, 'deferd.toml'), ...args])

test('prints the value of a key, of a parameter or of a table', async () => {
  expect(await query('canonical_maps', 'ANN@a.test')).toMatchObject({ code: 0, out: 'x@y.test\n' })
  expect(await query(`texthash:${folder}/canonical`, 'ann@a.test')).toMatchObject({ code: 0, out: 'x@y.test\n' })
  expect(await query('inline:{a=b, {c=d e}}', 'c')).toMatchObject({ code: 0, out: 'd e\n' })
  expect(await query('static:x', 'anything')).toMatchObject({ code: 0, out: 'x\n' })
  expect(await query('transport_maps', 'a.test')).toMatchObject({ code: 0, out: 'smtp:[b.test]\n' })
})

test('looks a key up in patterns as it is, with an action as its value', async () => {
  writeFileSync(join(folder, 'checks'), '/^Subject: (.*)/i REPLACE X-Subject: $1\n')
  expect(await query(`pcre:${folder}/checks`, 'Subject: Hi')).toMatchObject({ code: 0, out: 'REPLACE X-Subject: Hi\n' })
  expect(await query(`pcre:${folder}/checks`, 'subject: hi')).toMatchObject({ code: 1, out: '' })
  writeFileSync(join(folder, 'checks'), '/(/ x\n')
  expect(await query(`regexp:${folder}/checks`, 'x')).toMatchObject({
    code: 78,
    err: expect.stringContaining('checks, line 1: a parenthesis'),
  })
})

test('ends with 1 and prints nothing when no table has the key', async () => {
  expect(await query('canonical_maps', 'eve@a.test')).toMatchObject({ code: 1, out: '', err: '' })
  expect(await query('sender_canonical_maps', 'ann@a.test')).toMatchObject({ code: 1, out: '', err: '' })
})

test('ends with 78 when there is no such table', async () => {
  expect(await query('relayhost', 'x')).toMatchObject({
    code: 78,
    err: expect.stringContaining('relayhost names no lookup tables; name one of'),
  })
  expect(await query('texthash:/absent', 'x')).toMatchObject({ code: 78, err: expect.stringContaining('cannot read /absent') })
  expect(await query('hash:/x', 'x')).toMatchObject({ code: 78, err: expect.stringContaining('deferd does not read hash: tables') })
})

test('a tab in a value is printed as it is, and other control characters are masked', async () => {
  expect(await query('inline:{{a=x\ty}}', 'a')).toMatchObject({ code: 0, out: 'x\ty\n' })
  expect(await query('inline:{{a=x\u001by}}', 'a')).toMatchObject({ code: 0, out: 'x?y\n' })
})
