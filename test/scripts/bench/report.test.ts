import { expect, test } from 'vitest'
import { CASES } from '../../../scripts/bench/cases.ts'
import { formatReport, summarize } from '../../../scripts/bench/report.ts'
import type { Turn } from '../../../scripts/bench/statistics.ts'

const kept = CASES.filter(({ name }) => name === 'kept')

function turns(contestant: string, cpus: readonly number[]): Turn[] {
  return cpus.map((cpu, index) => ({ round: index + 1, case: 'kept', contestant, messages: 2_000, cpu, rate: 1_000 / cpu }))
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

test('the report fits into 80 columns', () => {
  const large = ['tree', 'base', 'without-store'].flatMap((name) =>
    turns(name, [99_999.999, 99_999.999]).map((turn) => ({ ...turn, rate: 99_999 })),
  )
  const widest = Math.max(
    ...formatReport(CASES, summarize(large))
      .split('\n')
      .map((line) => line.length),
  )
  expect(widest).toBeLessThanOrEqual(80)
})
