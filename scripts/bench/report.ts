/**
 * The result as text of at most 80 columns: for each case the measures of all contestants, then their ratios to `tree`.
 */
import { describeCase, type Case } from './cases.ts'
import { ratios, spreadOf, valuesOf, type Quantity, type Spread, type Turn } from './statistics.ts'

const REFERENCE = 'tree'
const COLUMNS = [16, 28, 28] as const

/** The spreads of a contestant in a case; null for what was not measured. */
export interface Summary extends Readonly<Record<Quantity, Spread | null>> {
  readonly case: string
  readonly contestant: string
  /** Messages in a turn. */
  readonly messages: number
  readonly rounds: number
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
  const spread = (quantity: Quantity) => spreadOf(valuesOf(group, quantity))
  return {
    case: first.case,
    contestant: first.contestant,
    messages: first.messages,
    rounds: group.length,
    cpu: spread('cpu'),
    rate: spread('rate'),
    rss: spread('rss'),
    acceptRate: spread('acceptRate'),
    accept50: spread('accept50'),
    accept99: spread('accept99'),
    deliver50: spread('deliver50'),
    deliver99: spread('deliver99'),
    loop99: spread('loop99'),
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
  const timed = summaries.filter(({ accept50 }) => accept50 !== null)
  const resident = summaries.filter(({ rss }) => rss !== null)
  const lines = [
    `${load.name}: ${describeCase(load)}`,
    row('', 'CPU ms/message', rateName(load)),
    ...summaries.map(({ contestant, cpu, rate }) => row(contestant, formatSpread(cpu, 3), formatSpread(rate, 0))),
    ...(compared.length === 0 ? [] : [row('', `CPU, ${REFERENCE} = 1`, `${rateName(load).replace('/s', '')}, ${REFERENCE} = 1`)]),
    ...compared.map(({ contestant, cpuRatio, rateRatio }) => row(contestant, formatSpread(cpuRatio, 2), formatSpread(rateRatio, 2))),
    ...(timed.length === 0 ? [] : [row('', 'p50, p99 to 250, ms', 'p50, p99 to delivery, ms')]),
    ...timed.map((one) => row(one.contestant, medians(one.accept50, one.accept99), medians(one.deliver50, one.deliver99))),
    ...(resident.length === 0 ? [] : [row('', 'RSS, MB', 'event-loop delay p99, ms')]),
    ...resident.map(({ contestant, rss, loop99 }) => row(contestant, medians(rss), medians(loop99))),
  ]
  return `${lines.join('\n')}\n`
}

/** The name of the messages per second. */
export function rateName({ kind, fate }: Case): string {
  if (kind === 'store') return 'stored/s'
  switch (fate) {
    case 'deferred':
      return 'deferred/s'
    case 'held':
      return 'accepted/s'
    case 'delivered':
    case 'deferred once':
    case 'half bounced':
      return 'delivered/s'
  }
}

const medians = (...spreads: readonly (Spread | null)[]): string =>
  spreads.map((spread) => (spread === null ? '-' : spread.median.toFixed(spread.median < 100 ? 1 : 0))).join(', ')

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
