/** Tables of retry plans: one row of attempts per plan, and the figures of the plans side by side. */
import { DAY, HOUR, type Duration } from '../../system/clock.ts'
import type { Plan } from '../../planner/plan.ts'
import { attemptRow, timeAxis } from '../../simulator/terminal-plot.ts'
import type { Display } from './style.ts'
import { columnsFor, cutMiddle, tableHeading, tableRow } from './table.ts'
import { grouped, maskControls, span } from '../../presentation/text.ts'
import { hanging, wrapped } from './wrapping.ts'

const spanOr = (duration: Duration | null, otherwise: string): string => (duration === null ? otherwise : span(duration))

/** Rows of the table: a label, and one value per plan. */
function rowsOf(plans: readonly Plan[], backlog: number | null): readonly (readonly [string, readonly string[]])[] {
  const [first] = plans
  if (first === undefined) return []
  const row = (label: string, value: (plan: Plan) => string): readonly [string, readonly string[]] => [label, plans.map(value)]
  return [
    row('attempts by 1 h', ({ tries }) => String(tries.by1h)),
    row('attempts by 24 h', ({ tries }) => String(tries.by24h)),
    row('attempts in all', ({ tries }) => String(tries.lifetime)),
    ...(plans.some(({ limit }) => limit !== null) ? [row('attempts at most', ({ limit }) => String(limit ?? 'no limit'))] : []),
    row('first warning', ({ warning }) => spanOr(warning, 'none')),
    row('returned to sender', ({ bounce }) => span(bounce)),
    ['', plans.map(() => '')],
    ['extra wait after', plans.map(() => 'mean / worst')],
    ...first.greylisting.map(({ delay }, i) =>
      row(`  greylisting of ${span(delay)}`, ({ greylisting }) => spanOr(greylisting[i]?.extra ?? null, 'returned')),
    ),
    ...first.outages.map(({ outage }, i) => row(`  an outage of ${span(outage)}`, ({ outages }) => outageCell(outages[i]))),
    ...(backlog === null ? [] : failureRows(plans, backlog)),
  ]
}

/** Failed requests per second at the receiver, while all messages of a backlog wait for the end of an outage. */
function failureRows(plans: readonly Plan[], backlog: number): readonly (readonly [string, readonly string[]])[] {
  const outages = plans[0]?.outages ?? []
  return [
    ['', plans.map(() => '')],
    [`failed requests of ${grouped(backlog)} messages`, plans.map(() => 'per second')],
    ...outages.map(
      ({ outage }, i) =>
        [`  at the end of ${span(outage)}`, plans.map((plan) => rateText(backlog * (plan.outages[i]?.attemptRate ?? 0)))] as const,
    ),
  ]
}

/** `1,000`, `33`, `0.25`; two digits below 10. */
const rateText = (rate: number): string => (rate >= 9.95 ? grouped(Math.round(rate)) : String(Number(rate.toPrecision(2))))

function outageCell(outage: Plan['outages'][number] | undefined): string {
  if (outage === undefined || outage.mean === null || outage.worst === null)
    return outage === undefined ? '' : `lost ${percent(outage.lost)}`
  return `${short(outage.mean)} / ${short(outage.worst)}${outage.lost > 0.0005 ? ` †` : ''}`
}

/** Formats a duration in its largest unit: `45s`, `5m`, `1.3h`, `18h`, `1.5d`. */
function short(duration: Duration): string {
  if (duration >= DAY) return `${(duration / DAY).toFixed(1)}d`
  if (duration >= HOUR) return `${(duration / HOUR).toFixed(duration < 9.95 * HOUR ? 1 : 0)}h`
  return span(duration, 1)
}

const percent = (share: number): string => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`

/** The table without its plot, for the HTML page. */
export function planRows(
  plans: readonly Plan[],
  backlog: number | null,
): { readonly headings: readonly string[]; readonly rows: readonly (readonly string[])[] } {
  const rows = rowsOf(plans, backlog).filter(([label]) => label !== '')
  return { headings: ['', ...plans.map(({ name }) => name)], rows: rows.map(([label, cells]) => [label.trim(), ...cells]) }
}

/** Width of a name beside a row of attempts, as a fraction of the line. */
const LARGEST_NAME_SHARE = 0.27
const GAP = '  '

const longestOf = (texts: readonly string[]): number => texts.reduce((most, text) => Math.max(most, text.length), 0)

/** Plans whose columns fit beside the labels, as many in each part as in the others. */
function parts(plans: readonly Plan[], backlog: number | null, width: number): readonly (readonly Plan[])[] {
  const rows = rowsOf(plans, backlog)
  const cell = GAP.length + longestOf(rows.flatMap(([, cells]) => cells))
  const most = Math.max(1, Math.floor((width - longestOf(rows.map(([label]) => label))) / cell))
  const each = Math.ceil(plans.length / Math.ceil(plans.length / most))
  return Array.from({ length: Math.ceil(plans.length / each) }, (_, i) => plans.slice(i * each, (i + 1) * each))
}

/** Figures of the plans, a column each. */
function figures(plans: readonly Plan[], backlog: number | null, display: Display): readonly string[] {
  const rows = rowsOf(plans, backlog)
  const labels = longestOf(rows.map(([label]) => label))
  const room = Math.floor((display.width - labels) / plans.length) - GAP.length
  const headings = ['', ...plans.map(({ name }) => ` ${cutMiddle(maskControls(name), room)}`)]
  const cells = rows.map(([label, values]) => [label, ...values.map((value) => (value === '' ? '' : ` ${value}`))])
  const columns = columnsFor(headings, cells, display)
  return [tableHeading(columns, display), ...cells.map((row) => tableRow(row, columns, display))]
}

/** `backlog`: number of messages for which failed requests per second are shown; null for none. */
export function planTable(plans: readonly Plan[], backlog: number | null, display: Display): string {
  const { width } = display
  const longest = plans.reduce((most, { bounce }) => Math.max(most, bounce), 0)
  const names = plans.map(({ name }) => cutMiddle(maskControls(name), Math.floor(width * LARGEST_NAME_SHARE)))
  const left = longestOf(names)
  const row = (name: string, plot: string): string => `${name.padEnd(left)} ${plot}`.trimEnd()
  const plot = [
    row('', timeAxis(longest, width - left - 1)),
    ...plans.map(({ attempts }, i) => row(names[i] ?? '', attemptRow(attempts, longest, width - left - 1))),
  ]
  const tables = parts(plans, backlog, width).flatMap((part) => ['', ...figures(part, backlog, display)])
  return [...plot, ...tables, '', ...notes(plans, width)].map((text) => `${text}\n`).join('')
}

function notes(plans: readonly Plan[], width: number): readonly string[] {
  const lost = plans.flatMap(({ name, outages }) =>
    outages
      .filter((outage) => outage.lost > 0.0005 && outage.mean !== null)
      .map(
        (outage) =>
          `${maskControls(name)}: ${percent(outage.lost)} of the mail of an outage of ${span(outage.outage)} is returned before it ends`,
      ),
  )
  const about = 'Waits of mail that arrived when the outage began; the end of the outage varies by a tenth.'
  return [...wrapped(about, width), ...lost.flatMap((text) => hanging('† ', text, { width, indent: 2 }))]
}
