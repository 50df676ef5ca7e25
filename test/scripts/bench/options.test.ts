import { expect, test } from 'vitest'
import { CASES } from '../../../scripts/bench/cases.ts'
import { CONTESTANTS, parseOptions, USAGE, UsageError } from '../../../scripts/bench/options.ts'

test('--quick takes five rounds, a full bench nine', () => {
  expect(parseOptions(['--quick'])).toMatchObject({ rounds: 5, messages: 2_000, base: null, json: 'bench-result.json' })
  expect(parseOptions([])).toMatchObject({ rounds: 9, messages: 4_000, drained: 100_000, cases: CASES })
  expect(namesOf(['--quick'])).toEqual(['kept', 'new'])
  expect(parseOptions(['--quick', '--help'])).toBe('help')
})

const namesOf = (args: readonly string[]): readonly string[] | null => {
  const options = parseOptions(args)
  return options === 'help' ? null : options.cases.map(({ name }) => name)
}

test('cases are measured in their order, those of --quick too', () => {
  expect(namesOf(['--cases', 'store, drain,new'])).toEqual(['new', 'drain', 'store'])
  expect(namesOf(['--quick', '--cases', 'paced'])).toEqual(['paced'])
})

test('options are taken', () => {
  const args = ['--rounds', '7', '--messages=500', '--base', 'HEAD~1', '--only', 'postfix, tree', '--json', 'a.json']
  expect(parseOptions([...args, '--drained', '100'])).toEqual({
    rounds: 7,
    messages: 500,
    drained: 100,
    cases: CASES,
    base: 'HEAD~1',
    only: ['tree', 'postfix'],
    json: 'a.json',
  })
})

test('contestants that take long or need a network are measured when they are named', () => {
  expect(parseOptions([])).toMatchObject({ only: ['tree', 'base', 'without-store', 'postfix'] })
  expect(parseOptions(['--only', 'haraka,maps,tree'])).toMatchObject({ only: ['tree', 'maps', 'haraka'] })
})

test.each([
  [['--rounds', '0'], '--rounds takes a whole number from 1 to 99, not "0"'],
  [['--rounds', '1.5'], '--rounds takes a whole number from 1 to 99, not "1.5"'],
  [['--messages', '20001'], '--messages takes a whole number from 1 to 20000, not "20001"'],
  [['--drained', '99'], '--drained takes a whole number from 100 to 1000000, not "99"'],
  [['--cases', 'kept,1 MB'], `--cases takes names out of ${CASES.map(({ name }) => name).join(', ')}, not "1 MB"`],
  [['--base='], '--base takes a commit, not ""'],
  [['--base=--all'], '--base takes a commit, not "--all"'],
  [['--only', 'tree,sendmail'], `--only takes names out of ${CONTESTANTS.join(', ')}, not "sendmail"`],
  [['--fast'], "Unknown option '--fast'; --help lists the options"],
  [['fast'], "Unexpected argument 'fast'; --help lists the options"],
  [['--rounds'], "Option '--rounds <value>' argument missing; --help lists the options"],
])('%j is refused in one sentence', (args, sentence) => {
  expect(() => parseOptions(args)).toThrow(new UsageError(sentence))
})

test('the usage fits into 80 columns', () => {
  expect(Math.max(...USAGE.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80)
})
