/** Table of a scenario's result: one line per destination, followed by curves over time. */
import { type Curves, curvesOf, lastDelivery, queuedOf, totalsOf, waitsOf } from '../../simulator/scenario/scenario-figures.ts'
import type { DestinationRecord, ScenarioResult } from '../../simulator/scenario/scenario-record.ts'
import { blockRow, evenAxis, shadedRow } from '../../simulator/terminal-plot.ts'
import type { Display } from './style.ts'
import { columnsFor, cutMiddle, tableHeading, tableRow } from './table.ts'
import { grouped, maskControls, plural, span } from '../../presentation/text.ts'
import { wrapped } from './wrapping.ts'

const HEADINGS = ['DESTINATION', 'MAIL', 'DELIVERED', 'RETURNED', 'QUEUED', 'FAILED', 'WAIT 50%', '95%', 'LAST AT']

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

/** A curve as a label and the values of its steps. */
type Curve = readonly [label: string, values: readonly number[]]

const mostOf = (values: readonly number[]): number => values.reduce((highest, value) => Math.max(highest, value), 0)

/** The longest label, without its number. */
const LONGEST_LABEL = '  delivered, at most '
const LEAST_STEPS = 10

/** Upper limit of the numbers in a destination's labels. It is known before the number of steps, on which the numbers depend. */
const highest = ({ accepted, failed, windows }: DestinationRecord): number =>
  mostOf([accepted.length, failed.length, ...windows.map(({ window }) => Math.ceil(window))])

/** Curves of a destination that are not zero everywhere. */
function labelledCurves({ waiting, delivered, failed, window }: Curves): readonly Curve[] {
  const curves = [
    ['in queue', waiting] as const,
    ['delivered', delivered] as const,
    ['failed', failed] as const,
    ['window', window] as const,
  ]
  return curves.flatMap(([name, values]) =>
    mostOf(values) === 0 ? [] : [[`  ${name}, at most ${grouped(mostOf(values))}`, values] as const],
  )
}

/** Maximum number of destinations with curves. */
const MOST_WITH_CURVES = 6

/** Curves as rows of block characters. Each curve is scaled to its own maximum, which is printed beside it. */
function curveRows({ destinations, outages, ended }: ScenarioResult, { width }: Pick<Display, 'width'>): readonly string[] {
  const shown = destinations.slice(0, MOST_WITH_CURVES)
  const left = LONGEST_LABEL.length + grouped(mostOf(shown.map(highest))).length
  const steps = Math.max(LEAST_STEPS, width - left - 1)
  const row = (label: string, plot: string): string => `${label.padEnd(left)} ${plot}`.trimEnd()
  const curves = (record: DestinationRecord): readonly string[] => {
    const all = curvesOf(record, ended, steps)
    return labelledCurves(all).map(([label, values]) => {
      const points = all.times.map((x, i) => ({ x, y: values[i] ?? 0 }))
      return row(label, blockRow(points, { x: ended, y: mostOf(values) }, steps))
    })
  }
  return [
    row('', evenAxis(ended, steps)),
    ...outages
      .slice(0, MOST_WITH_CURVES)
      .map(({ label, from, until }) => row(cutMiddle(maskControls(label), left), shadedRow(from, until, ended, steps))),
    ...shown.flatMap((record) => [cutMiddle(maskControls(record.destination), width), ...curves(record)]),
  ]
}

export function scenarioTable(result: ScenarioResult, name: string, seed: number, display: Display): string {
  const { destinations, notices, ended } = result
  const { width } = display
  const { messages, recipients, queued } = totalsOf(destinations)
  const { headings, rows } = scenarioRows(result)
  const columns = columnsFor(headings, rows, display)
  const sent = Object.entries(notices).flatMap(([kind, count]) => (count === 0 ? [] : [plural(count, `${kind} notice`)]))
  const about = `${plural(messages, 'message')} to ${plural(recipients, 'recipient')} in ${span(ended)} of virtual time`
  const left = queued === 0 ? '.' : `; ${grouped(queued)} recipients are still queued.`
  return [
    ...wrapped(`${maskControls(name)}, seed ${seed}: ${about}`, width),
    '',
    tableHeading(columns, display),
    ...rows.map((row) => tableRow(row, columns, display)),
    '',
    ...curveRows(result, display),
    '',
    ...wrapped(`Notices sent: ${sent.length === 0 ? 'none' : sent.join(', ')}${left}`, width),
  ]
    .map((text) => `${text}\n`)
    .join('')
}
