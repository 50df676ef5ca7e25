/** Table of a scenario's result: one line per destination, followed by curves over time. */
import { curvesOf, lastDelivery, queuedOf, totalsOf, waitsOf } from '../../simulator/scenario/scenario-figures.ts'
import type { DestinationRecord, ScenarioResult } from '../../simulator/scenario/scenario-record.ts'
import { blockRow, evenAxis } from '../../simulator/terminal-plot.ts'
import { clipped, grouped, maskControls, plural, span } from './text.ts'

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
      maskControls(record.destination),
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

/** Curves as rows of block characters. Each curve is scaled to its own maximum, which is printed beside it. */
function curveRows(record: DestinationRecord, { ended }: ScenarioResult, width: number): readonly string[] {
  const curves = curvesOf(record, ended, width)
  const row = (label: string, values: readonly number[]): readonly string[] => {
    const most = values.reduce((highest, value) => Math.max(highest, value), 0)
    if (most === 0) return []
    const points = curves.times.map((x, i) => ({ x, y: values[i] ?? 0 }))
    return [`${`  ${label}, at most ${grouped(most)}`.padEnd(LABEL_WIDTH)} ${blockRow(points, { x: ended, y: most }, width)}`.trimEnd()]
  }
  return [
    maskControls(record.destination),
    ...row('in queue', curves.waiting),
    ...row('delivered', curves.delivered),
    ...row('failed', curves.failed),
    ...row('window', curves.window),
  ]
}

/** Maximum number of destinations for which curves are printed. */
const MOST_CURVES = 6

export function scenarioTable(result: ScenarioResult, name: string, seed: number, columns: number): string {
  const { destinations, notices, ended } = result
  const { messages, recipients, queued } = totalsOf(destinations)
  const { headings, rows } = scenarioRows(result)
  const width = Math.max(20, columns - LABEL_WIDTH - 2)
  const sent = Object.entries(notices).flatMap(([kind, count]) => (count === 0 ? [] : [plural(count, `${kind} notice`)]))
  return [
    `${maskControls(name)}, seed ${seed}: ${plural(messages, 'message')} to ${plural(recipients, 'recipient')} in ${span(ended)} of virtual time`,
    '',
    line(headings),
    ...rows.map(line),
    '',
    `${' '.repeat(LABEL_WIDTH + 1)}${evenAxis(ended, width)}`,
    ...destinations.slice(0, MOST_CURVES).flatMap((record) => curveRows(record, result, width)),
    '',
    `Notices sent: ${sent.length === 0 ? 'none' : sent.join(', ')}${queued === 0 ? '.' : `; ${grouped(queued)} recipients are still queued.`}`,
  ]
    .map((text) => `${text}\n`)
    .join('')
}
