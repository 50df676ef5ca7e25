/**
 * The result as text of at most 80 columns: for each case the measures of all contestants, then their ratios to `tree`.
 */
import { describeCase, type Case } from './cases.ts'
import { ratios, spreadOf, type Quantity, type Spread, type Turn } from './statistics.ts'

const REFERENCE = 'tree'
const COLUMNS = [16, 28, 28] as const

export interface Summary {
  readonly case: string
  readonly contestant: string
  readonly cpu: Spread | null
  readonly rate: Spread | null
  /** Ratios to `tree`, round by round; null for `tree` itself and where it did not run. */
  readonly cpuRatio: Spread | null
  readonly rateRatio: Spread | null
}

/** One summary for each case and contestant, in the order of their first turns. */
export function summarize(turns: readonly Turn[]): Summary[] {
  const groups = Map.groupBy(turns, (turn) => JSON.stringify([turn.case, turn.contestant]))
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    return first === undefined ? [] : [summarizeGroup(first, group, turns)]
  })
}

function summarizeGroup(first: Turn, group: readonly Turn[], turns: readonly Turn[]): Summary {
  const reference = first.contestant === REFERENCE ? [] : turns.filter(({ contestant }) => contestant === REFERENCE)
  const values = (quantity: Quantity) => spreadOf(group.map((turn) => turn[quantity]))
  return {
    case: first.case,
    contestant: first.contestant,
    cpu: values('cpu'),
    rate: values('rate'),
    cpuRatio: spreadOf(ratios(group, reference, 'cpu')),
    rateRatio: spreadOf(ratios(group, reference, 'rate')),
  }
}

export function formatReport(cases: readonly Case[], summaries: readonly Summary[]): string {
  return cases.map((load) => formatCase(load, summaries)).join('\n')
}

function formatCase(load: Case, all: readonly Summary[]): string {
  const summaries = all.filter((summary) => summary.case === load.name)
  const compared = summaries.filter(({ cpuRatio }) => cpuRatio !== null)
  const lines = [
    `${load.name}: ${describeCase(load)}`,
    row('', 'CPU ms/message', 'delivered/s'),
    ...summaries.map(({ contestant, cpu, rate }) => row(contestant, formatSpread(cpu, 3), formatSpread(rate, 0))),
    ...(compared.length === 0 ? [] : [row('', `CPU, ${REFERENCE} = 1`, `delivered, ${REFERENCE} = 1`)]),
    ...compared.map(({ contestant, cpuRatio, rateRatio }) => row(contestant, formatSpread(cpuRatio, 2), formatSpread(rateRatio, 2))),
  ]
  return `${lines.join('\n')}\n`
}

const row = (...cells: readonly string[]): string =>
  cells
    .map((cell, n) => cell.padEnd(COLUMNS[n] ?? 0))
    .join('')
    .trimEnd()

/** `0.61 (0.58–0.66)`: median, smallest and largest. */
export function formatSpread(spread: Spread | null, digits: number): string {
  if (spread === null) return '-'
  const [median, min, max] = [spread.median, spread.min, spread.max].map((value) => value.toFixed(digits))
  return `${median} (${min}–${max})`
}
