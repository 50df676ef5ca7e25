/** The screen of `deferd demo`. Its golden files are in test/cli/golden; `vitest run -u` writes them again. */
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Operator, withoutColours, type Terminal } from '../../support/operator.ts'

let operator: Operator
beforeEach(() => {
  operator = new Operator()
})
afterEach(() => operator.leave())

const golden = (name: string): string => join(import.meta.dirname, '../golden', name)

async function screen(terminal: Terminal): Promise<string> {
  const { code, out, err } = await operator.run(['demo'], terminal)
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return out
}

test('fits one screen of 80 columns; colours on a terminal only, and not with NO_COLOR', async () => {
  const plain = await screen({ columns: null })
  await expect(plain).toMatchFileSnapshot(golden('demo-80.txt'))
  const lines = plain.trimEnd().split('\n')
  expect(lines.filter((line) => line.length > 80)).toEqual([])
  expect(lines.length).toBeLessThanOrEqual(48)
  expect(await screen({ columns: 80 })).toBe(plain)
  expect(await screen({ columns: 80, env: { NO_COLOR: '', TERM: 'dumb' } })).toBe(plain)
  const coloured = await screen({ columns: 80, env: { NO_COLOR: '' } })
  expect(coloured).toContain('\u001b[33m')
  expect(withoutColours(coloured)).toBe(plain)
})

test('uses the width of the terminal', async () => {
  await expect(await screen({ columns: 120 })).toMatchFileSnapshot(golden('demo-120.txt'))
})
