import { expect, test } from 'vitest'
import { parseOptions, USAGE, UsageError } from '../../../scripts/bench/options.ts'

test('--quick takes five rounds, a full bench nine', () => {
  expect(parseOptions(['--quick'])).toMatchObject({ quick: true, rounds: 5, base: null, json: 'bench-result.json' })
  expect(parseOptions([])).toMatchObject({ quick: false, rounds: 9 })
  expect(parseOptions(['--quick', '--help'])).toBe('help')
})

test('options are taken', () => {
  const args = ['--rounds', '7', '--messages=500', '--base', 'HEAD~1', '--only', 'postfix, tree', '--json', 'a.json']
  expect(parseOptions(args)).toEqual({ quick: false, rounds: 7, messages: 500, base: 'HEAD~1', only: ['tree', 'postfix'], json: 'a.json' })
})

test('contestants that take long or need a network are measured when they are named', () => {
  expect(parseOptions([])).toMatchObject({ only: ['tree', 'base', 'without-store', 'postfix'] })
  expect(parseOptions(['--only', 'haraka,maps,tree'])).toMatchObject({ only: ['tree', 'maps', 'haraka'] })
})

test.each([
  [['--rounds', '0'], '--rounds takes a whole number from 1 to 99, not "0"'],
  [['--rounds', '1.5'], '--rounds takes a whole number from 1 to 99, not "1.5"'],
  [['--messages', '20001'], '--messages takes a whole number from 1 to 20000, not "20001"'],
  [['--base='], '--base takes a commit, not ""'],
  [['--base=--all'], '--base takes a commit, not "--all"'],
  [['--only', 'tree,sendmail'], '--only takes names out of tree, base, without-store, maps, haraka, postfix, not "sendmail"'],
  [['--fast'], "Unknown option '--fast'; --help lists the options"],
  [['fast'], "Unexpected argument 'fast'; --help lists the options"],
  [['--rounds'], "Option '--rounds <value>' argument missing; --help lists the options"],
])('%j is refused in one sentence', (args, sentence) => {
  expect(() => parseOptions(args)).toThrow(new UsageError(sentence))
})

test('the usage fits into 80 columns', () => {
  expect(Math.max(...USAGE.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
})
