import { expect, test } from 'vitest'
import { CASES } from '../../../scripts/bench/cases.ts'
import { formatReport, summarize } from '../../../scripts/bench/report.ts'
import type { Turn } from '../../../scripts/bench/statistics.ts'
import { turnOf } from './turn-of.ts'

const kept = CASES.filter(({ name }) => name === 'kept')

function turns(contestant: string, cpus: readonly number[]): Turn[] {
  return cpus.map((cpu, index) => turnOf({ round: index + 1, contestant, cpu, rate: 1_000 / cpu }))
}

test('the report shows measures, then ratios to the working tree', () => {
  const summaries = summarize([...turns('tree', [0.5, 0.4, 0.8]), ...turns('postfix', [2, 2, 2])])
  expect(formatReport(kept, summaries)).toBe(`kept: 2 kB, 1 recipient, 20 clients, kept connections
                CPU ms/message              delivered/s
tree            0.500 (0.400–0.800)         2000 (1250–2500)
postfix         2.000 (2.000–2.000)         500 (500–500)
                CPU, tree = 1               delivered, tree = 1
postfix         4.00 (2.50–5.00)            0.25 (0.20–0.40)
`)
})

test('without the working tree there are no ratios', () => {
  expect(formatReport(kept, summarize(turns('postfix', [2, 2])))).not.toContain('tree')
})

test('latencies, memory and the delay of the event loop are shown where they were measured', () => {
  const timed = { accept50: 3.14, accept99: 250, deliver50: 1, deliver99: null, rss: 180.4 }
  const report = formatReport(kept, summarize([turnOf({ ...timed, loop99: 2 }), turnOf({ contestant: 'postfix', rss: 30 })]))
  expect(report.split('\n').slice(6)).toEqual([
    '                p50, p99 to 250, ms         p50, p99 to delivery, ms',
    'tree            3.1, 250                    1.0, -',
    '                RSS, MB                     event-loop delay p99, ms',
    'tree            180                         2.0',
    'postfix         30.0                        -',
    '',
  ])
})

test('the report fits into 80 columns', () => {
  const large = ['tree', 'base', 'without-store'].flatMap((name) =>
    turns(name, [99_999.999, 99_999.999]).flatMap((turn) => CASES.map((load) => ({ ...turn, case: load.name, rate: 99_999, rss: 1 }))),
  )
  const widest = Math.max(
    ...formatReport(CASES, summarize(large))
      .split('\n')
      .map((line) => line.length),
  )
  expect(widest).toBeLessThanOrEqual(80)
})
