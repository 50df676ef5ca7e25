/** A scenario for people: a line per destination, and below what happened there over time. */
import { curvesOf, lastDelivery, queuedOf, totalsOf, waitsOf } from '../simulator/scenario-figures.ts'
import type { DestinationRecord, ScenarioResult } from '../simulator/scenario-record.ts'
import { blockRow, evenAxis } from '../simulator/terminal-plot.ts'
import { clipped, grouped, harmless, plural, span } from './text.ts'

const HEADINGS = ['DESTINATION', 'MAIL', 'DELIVERED', 'RETURNED', 'QUEUED', 'FAILED TRIES', 'WAIT 50 %', '95 %', 'LAST AT']
const WIDTHS = [24, 8, 9, 8, 8, 12, 10, 10, 10]

export function scenarioRows({ destinations }: ScenarioResult): {
  readonly headings: readonly string[]
  readonly rows: readonly (readonly string[])[]
} {
  const rows = destinations.map((record) => {
    const waits = waitsOf(record)
    const last = lastDelivery(record)
    return [
      harmless(record.destination),
      grouped(record.accepted.length),
      grouped(record.delivered.length),
      grouped(record.bounced.length + record.expired.length),
      grouped(queuedOf(record)),
      grouped(record.failed.length),
      waits === null ? '' : span(waits.p50),
      waits === null ? '' : span(waits.p95),
      last === null ? '' : span(last),
    ]
  })
  return { headings: HEADINGS, rows }
}

const line = (cells: readonly string[]): string =>
  cells
    .map((cell, i) => (i === 0 ? clipped(cell, WIDTHS[i] ?? 0).padEnd(WIDTHS[i] ?? 0) : cell.padStart(WIDTHS[i] ?? 0)))
    .join(' ')
    .trimEnd()

const LABEL_WIDTH = 26

/** Rows of blocks, each against its own most, which is told beside it. */
function curveRows(record: DestinationRecord, { ended }: ScenarioResult, width: number): readonly string[] {
  const curves = curvesOf(record, ended, width)
  const row = (label: string, values: readonly number[]): readonly string[] => {
    const most = values.reduce((highest, value) => Math.max(highest, value), 0)
    if (most === 0) return []
    const points = curves.times.map((x, i) => ({ x, y: values[i] ?? 0 }))
    return [`${`  ${label}, at most ${grouped(most)}`.padEnd(LABEL_WIDTH)} ${blockRow(points, { x: ended, y: most }, width)}`.trimEnd()]
  }
  return [
    harmless(record.destination),
    ...row('in queue', curves.waiting),
    ...row('delivered', curves.delivered),
    ...row('failed', curves.failed),
    ...row('window', curves.window),
  ]
}

/** More destinations than this are told of in the table only. */
const MOST_CURVES = 6

export function scenarioTable(result: ScenarioResult, name: string, seed: number, columns: number): string {
  const { destinations, notices, ended } = result
  const { messages, recipients, queued } = totalsOf(destinations)
  const { headings, rows } = scenarioRows(result)
  const width = Math.max(20, columns - LABEL_WIDTH - 2)
  const told = Object.entries(notices).flatMap(([kind, count]) => (count === 0 ? [] : [plural(count, `${kind} notice`)]))
  return [
    `${harmless(name)}, seed ${seed}: ${plural(messages, 'message')} to ${plural(recipients, 'recipient')} in ${span(ended)} of virtual time`,
    '',
    line(headings),
    ...rows.map(line),
    '',
    `${' '.repeat(LABEL_WIDTH + 1)}${evenAxis(ended, width)}`,
    ...destinations.slice(0, MOST_CURVES).flatMap((record) => curveRows(record, result, width)),
    '',
    `Senders were told by ${told.length === 0 ? 'no notice' : told.join(', ')}${queued === 0 ? '.' : `; ${grouped(queued)} still wait.`}`,
  ]
    .map((text) => `${text}\n`)
    .join('')
}
