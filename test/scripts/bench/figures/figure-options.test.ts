import { expect, test } from 'vitest'
import { figureUsage, parseFigureOptions } from '../../../../scripts/bench/figures/figure-options.ts'
import { UsageError } from '../../../../scripts/bench/options.ts'
import { DKIM } from '../../../../scripts/bench/dkim/dkim-subject.ts'
import { EVENTS } from '../../../../scripts/bench/events/events-subject.ts'
import { PAGE } from '../../../../scripts/bench/page/page-subject.ts'
import { MEMORY } from '../../../../scripts/bench/memory/memory-subject.ts'
import { POSTGRES } from '../../../../scripts/bench/postgres/postgres-subject.ts'
import { QUEUE } from '../../../../scripts/bench/queue/queue-subject.ts'
import { SLOW_DISK } from '../../../../scripts/bench/slow-disk/slow-disk-subject.ts'
import { TLS } from '../../../../scripts/bench/tls/tls-subject.ts'

const PARTS = ['store', 'relay']

test('the defaults measure all parts in full size', () => {
  expect(parseFigureOptions([], PARTS)).toEqual({ rounds: 3, size: 1, only: PARTS, json: 'figures.json', keep: null })
  expect(parseFigureOptions(['--help'], PARTS)).toBe('help')
})

test('options are taken', () => {
  const args = ['--rounds', '7', '--size=0.05', '--only', 'relay', '--json', 'a.json', '--keep', 'queues']
  expect(parseFigureOptions(args, PARTS)).toEqual({ rounds: 7, size: 0.05, only: ['relay'], json: 'a.json', keep: 'queues' })
})

test.each([
  [['--rounds', '0'], '--rounds takes a whole number from 1 to 99, not "0"'],
  [['--rounds', '1.5'], '--rounds takes a whole number from 1 to 99, not "1.5"'],
  [['--size', '2'], '--size takes a number from 0.001 to 1, not "2"'],
  [['--size', '1e-2'], '--size takes a number from 0.001 to 1, not "1e-2"'],
  [['--only', 'store,page'], '--only takes names out of store, relay, not "page"'],
  [['--fast'], "Unknown option '--fast'; --help lists the options"],
])('%j is refused in one sentence', (args, sentence) => {
  expect(() => parseFigureOptions(args, PARTS)).toThrow(new UsageError(sentence))
})

test.each([POSTGRES, PAGE, DKIM, EVENTS, QUEUE, MEMORY, SLOW_DISK, TLS])('the usage of $name lists its parts', ({ name, about, parts }) => {
  const usage = figureUsage(name, about, parts)
  for (const part of parts) expect(usage).toContain(`  ${part.name} `)
})
