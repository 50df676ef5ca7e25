/** Tables of networks. */
import { expect, test } from 'vitest'
import { CidrTable } from '../../src/patterns/cidr-table.ts'

const table = (text: string, accept: (result: string) => void = () => undefined): CidrTable =>
  new CidrTable(
    text.split('\n').map((line, i) => ({ where: `line ${i + 1}`, text: line })),
    accept,
  )

test('the first network that has the address gives the result', () => {
  const found = table('10.0.0.0/8 a b\n!192.0.2.0/24 not\n[2001:db8::]/32 six\n192.0.2.7 one\n192.0.2.0/24 rest')
  expect(
    ['10.9.9.9', '11.0.0.1', '2001:db8:1::1', '192.0.2.7', '192.0.2.8', 'host.example', '10.0.0'].map((key) => found.find(key)),
  ).toEqual(['a b', 'not', 'six', 'one', 'rest', undefined, undefined])
})

test('a condition skips its lines', () => {
  const found = table('if 10.0.0.0/8\nif !10.1.0.0/16\n10.0.0.0/8 outer\nendif\n10.1.0.0/24 inner\nendif\n0.0.0.0/0 any')
  expect(['10.2.0.1', '10.1.0.1', '10.1.1.1', '192.0.2.1'].map((key) => found.find(key))).toEqual(['outer', 'inner', 'any', 'any'])
})

test.each([
  ['10.0.0.0/33 x', 'line 1: "10.0.0.0/33" is no network; write one such as 192.0.2.0/24'],
  ['host.example x', 'line 1: "host.example" is no network'],
  ['10.0.0.0/8', 'line 1: "10.0.0.0/8" has no result'],
  ['if 10.0.0.0/8\n10.0.0.1 x', 'line 1: if has no endif'],
  ['endif', 'line 1: endif has no if'],
])('%j is refused', (text, message) => {
  expect(() => table(text)).toThrow(message)
})

test('a result that cannot be used is refused with its line', () => {
  const accept = (result: string): void => {
    if (result === 'bad') throw new Error('bad is no action')
  }
  expect(() => table('10.0.0.1 good\n10.0.0.2 bad', accept)).toThrow('line 2: bad is no action')
})
