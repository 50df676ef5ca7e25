/** Table of contention simulator runs: one line per client, with the curve of the client's open connections. */
import type { ContentionResult } from '../../simulator/contention/contention.ts'
import { blockRow } from '../../simulator/terminal-plot.ts'
import type { Display } from './style.ts'
import { columnsFor, tableHeading, tableRow, widthBeside } from './table.ts'
import { grouped } from '../../presentation/text.ts'
import { wrapped } from './wrapping.ts'

export interface Run {
  readonly client: string
  readonly seed: number
  readonly result: ContentionResult
}

interface ServerSize {
  readonly maxBusy: number
  readonly requests: number
}

const HEADINGS = ['CLIENT', 'MAKESPAN', 'ATTEMPTS', 'DONE', '99 % BY']
const CURVE = 'OPEN CONNECTIONS'

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

const runsOf = (runs: readonly Run[], client: string): readonly Run[] => runs.filter((run) => run.client === client)

/**
 * Means of each client over its runs. With several runs, the 5th and 95th percentiles of the makespan are in parentheses. `99 % BY` is the
 * 99th percentile of the latency in the first run.
 */
export function contentionRows(
  runs: readonly Run[],
  { requests }: ServerSize,
): { headings: readonly string[]; rows: readonly (readonly string[])[] } {
  const rows = [...new Set(runs.map(({ client }) => client))].map((client) => {
    const results = runsOf(runs, client).map(({ result }) => result)
    const makespans = results.map(({ makespan }) => makespan / 1e6)
    const band = results.length > 1 ? ` (${percentile(makespans, 0.05).toFixed(0)}–${percentile(makespans, 0.95).toFixed(0)})` : ''
    const collapsed = results.some(({ completed }) => completed < requests)
    return [
      client,
      collapsed ? 'collapsed' : `${mean(makespans).toFixed(1)} s${band}`,
      grouped(Math.round(mean(results.map(({ attempts }) => attempts)))),
      grouped(Math.round(mean(results.map(({ completed }) => completed)))),
      `${(percentile([...(results[0]?.latencies ?? [])], 0.99) / 1e6).toFixed(1)} s`,
    ]
  })
  return { headings: HEADINGS, rows }
}

/** In seconds. */
const LONGEST_CURVE = 240

export function contentionTable(runs: readonly Run[], size: ServerSize, display: Display): string {
  const { width } = display
  const { headings, rows } = contentionRows(runs, size)
  const finished = runs.filter(({ result }) => result.completed === size.requests)
  const longest = (finished.length > 0 ? finished : runs).reduce((most, { result }) => Math.max(most, result.makespan / 1e6), 1)
  const bounds = { x: Math.min(LONGEST_CURVE, longest), y: 2 * size.maxBusy }
  const figures = columnsFor(headings, rows, { width: width - CURVE.length - 1 })
  const columns = [...figures, { heading: CURVE, width: Math.max(CURVE.length, widthBeside(figures, { width })) }]
  const curve = (client: string): string => {
    const samples = (runsOf(runs, client)[0]?.result.samples ?? []).map(({ time, busy }) => ({ x: time, y: busy }))
    return blockRow(samples, bounds, columns.at(-1)?.width ?? 0)
  }
  const ideal = ((size.requests * 0.5) / size.maxBusy).toFixed(1)
  const server = `${grouped(size.requests)} requests, one each millisecond, at a server of ${size.maxBusy} connections; ${ideal} s would do.`
  const scale = `The curves go from 0 to ${bounds.x.toFixed(0)} s; a full block is ${bounds.y} connections or more.`
  return [
    tableHeading(columns, display),
    ...rows.map(([client = '', ...cells]) => tableRow([client, ...cells, curve(client)], columns, display)),
    '',
    ...wrapped(server, width),
    ...wrapped(scale, width),
  ]
    .map((text) => `${text}\n`)
    .join('')
}

const GAP = '   '

/** Table of a model other than the default one, below the text `about` the model. */
export function modelTable(
  about: string,
  { headings, rows }: { readonly headings: readonly string[]; readonly rows: readonly (readonly string[])[] },
  display: Display,
): string {
  const spaced = (cells: readonly string[]): readonly string[] => cells.map((cell, i) => (i === 0 ? cell : `${GAP}${cell}`))
  const columns = columnsFor(spaced(headings), rows, display)
  const lines = [
    ...wrapped(about, display.width),
    '',
    tableHeading(columns, display),
    ...rows.map((row) => tableRow(row, columns, display)),
  ]
  return lines.map((line) => `${line}\n`).join('')
}
