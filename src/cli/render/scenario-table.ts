/** Table of a scenario's result: one line per destination, followed by curves over time. */
import { type Curves, curvesOf, lastDelivery, queuedOf, shareName, totalsOf, waitsOf } from '../../simulator/scenario/scenario-figures.ts'
import type { DestinationRecord, MailRecord, ScenarioResult } from '../../simulator/scenario/scenario-record.ts'
import { blockRow, evenAxis, shadedRow } from '../../simulator/terminal-plot.ts'
import type { Display } from './style.ts'
import { columnsFor, cutMiddle, tableHeading, tableRow } from './table.ts'
import { grouped, maskControls, plural, span } from '../../presentation/text.ts'
import { wrapped } from './wrapping.ts'

const FIGURES = ['MAIL', 'DELIVERED', 'RETURNED', 'QUEUED', 'FAILED', 'WAIT 50%', '95%', 'LAST AT']

interface Rows {
  readonly headings: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

export const scenarioRows = ({ destinations }: ScenarioResult): Rows =>
  rowsOf(
    'DESTINATION',
    destinations.map((record) => [record.destination, record]),
  )

function rowsOf(heading: string, records: readonly (readonly [name: string, record: MailRecord])[]): Rows {
  const rows = records.map(([name, record]) => {
    const waits = waitsOf(record)
    const last = lastDelivery(record)
    return [
      maskControls(name),
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
  return { headings: [heading, ...FIGURES], rows }
}

/** A curve as a label and the values of its steps. */
type Curve = readonly [label: string, values: readonly number[]]

const mostOf = (values: readonly number[]): number => values.reduce((highest, value) => Math.max(highest, value), 0)

/** The longest label, without its number. */
const LONGEST_LABEL = '  delivered, at most '
const LEAST_STEPS = 10

/** A record with curves. */
type Drawn = MailRecord & Partial<Pick<DestinationRecord, 'windows'>>

/** Upper limit of the numbers in a record's labels. It is known before the number of steps, on which the numbers depend. */
const highest = ({ accepted, failed, windows = [] }: Drawn): number =>
  mostOf([accepted.length, failed.length, ...windows.map(({ window }) => Math.ceil(window))])

/** Curves of a record that are not zero everywhere. */
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

/** Maximum number of destinations with curves, and of shares. */
const MOST_WITH_CURVES = 6

/** Curves as rows of block characters. Each curve is scaled to its own maximum, which is printed beside it. */
function curveRows({ destinations, shares, outages, ended }: ScenarioResult, { width }: Pick<Display, 'width'>): readonly string[] {
  const shown: readonly (readonly [name: string, record: Drawn])[] = [
    ...destinations.slice(0, MOST_WITH_CURVES).map((record) => [record.destination, record] as const),
    ...shares.slice(0, MOST_WITH_CURVES).map((record) => [`share ${shareName(record)}`, record] as const),
  ]
  const left = LONGEST_LABEL.length + grouped(mostOf(shown.map(([, record]) => highest(record)))).length
  const steps = Math.max(LEAST_STEPS, width - left - 1)
  const row = (label: string, plot: string): string => `${label.padEnd(left)} ${plot}`.trimEnd()
  const curves = (record: Drawn): readonly string[] => {
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
    ...shown.flatMap(([name, record]) => [cutMiddle(maskControls(name), width), ...curves(record)]),
  ]
}

function tableOf({ headings, rows }: Rows, display: Display): readonly string[] {
  const columns = columnsFor(headings, rows, display)
  return [tableHeading(columns, display), ...rows.map((row) => tableRow(row, columns, display))]
}

export function scenarioTable(result: ScenarioResult, name: string, seed: number, display: Display): string {
  const { destinations, shares, notices, ended } = result
  const { width } = display
  const { messages, recipients, queued } = totalsOf(destinations)
  const ofShares = rowsOf(
    'SHARE',
    shares.map((record) => [shareName(record), record]),
  )
  const sent = Object.entries(notices).flatMap(([kind, count]) => (count === 0 ? [] : [plural(count, `${kind} notice`)]))
  const about = `${plural(messages, 'message')} to ${plural(recipients, 'recipient')} in ${span(ended)} of virtual time`
  const left = queued === 0 ? '.' : `; ${grouped(queued)} recipients are still queued.`
  return [
    ...wrapped(`${maskControls(name)}, seed ${seed}: ${about}`, width),
    '',
    ...tableOf(scenarioRows(result), display),
    ...(shares.length === 0 ? [] : ['', ...tableOf(ofShares, display)]),
    '',
    ...curveRows(result, display),
    '',
    ...wrapped(`Notices sent: ${sent.length === 0 ? 'none' : sent.join(', ')}${left}`, width),
  ]
    .map((text) => `${text}\n`)
    .join('')
}
