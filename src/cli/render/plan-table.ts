/** Tables of retry plans: one row of attempts per plan, and the figures of the plans side by side. */
import type { Duration } from '../../system/clock.ts'
import type { Plan } from '../../simulator/plan.ts'
import { attemptRow, timeAxis } from '../../simulator/terminal-plot.ts'
import { clipped, maskControls, span } from './text.ts'

const NAME_WIDTH = 22
const LABEL_WIDTH = 30
const CELL_WIDTH = 16

const spanOr = (duration: Duration | null, otherwise: string): string => (duration === null ? otherwise : span(duration))

/** Rows of the table: a label, and one value per plan. */
function rowsOf(plans: readonly Plan[]): readonly (readonly [string, readonly string[]])[] {
  const [first] = plans
  if (first === undefined) return []
  const row = (label: string, value: (plan: Plan) => string): readonly [string, readonly string[]] => [label, plans.map(value)]
  return [
    row('attempts by 1 h', ({ tries }) => String(tries.by1h)),
    row('attempts by 24 h', ({ tries }) => String(tries.by24h)),
    row('attempts in all', ({ tries }) => String(tries.lifetime)),
    row('first warning', ({ warning }) => spanOr(warning, 'none')),
    row('returned to sender', ({ bounce }) => span(bounce)),
    ['', plans.map(() => '')],
    ['extra wait after', plans.map(() => 'mean / worst')],
    ...first.greylisting.map(({ delay }, i) =>
      row(`  greylisting for ${span(delay)}`, ({ greylisting }) => spanOr(greylisting[i]?.extra ?? null, 'returned')),
    ),
    ...first.outages.map(({ outage }, i) => row(`  an outage of ${span(outage)}`, ({ outages }) => outageCell(outages[i]))),
  ]
}

function outageCell(outage: Plan['outages'][number] | undefined): string {
  if (outage === undefined || outage.mean === null || outage.worst === null)
    return outage === undefined ? '' : `lost ${percent(outage.lost)}`
  return `${short(outage.mean)} / ${short(outage.worst)}${outage.lost > 0.0005 ? ` †` : ''}`
}

/** Formats a duration in its largest unit, with at most one decimal. */
function short(duration: Duration): string {
  const [largest = ''] = span(duration).split(' ')
  return duration >= 86_400_000
    ? `${(duration / 86_400_000).toFixed(1)}d`
    : duration >= 3_600_000
      ? `${(duration / 3_600_000).toFixed(1)}h`
      : largest
}

const percent = (share: number): string => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`

/** The table without its plot, for the HTML page. */
export function planRows(plans: readonly Plan[]): { readonly headings: readonly string[]; readonly rows: readonly (readonly string[])[] } {
  const rows = rowsOf(plans).filter(([label]) => label !== '')
  return { headings: ['', ...plans.map(({ name }) => name)], rows: rows.map(([label, cells]) => [label.trim(), ...cells]) }
}

export function planTable(plans: readonly Plan[], columns: number | null): string {
  const width = Math.max(40, (columns ?? 100) - 1)
  const longest = plans.reduce((most, { bounce }) => Math.max(most, bounce), 0)
  const plot = [
    `${''.padEnd(NAME_WIDTH)} ${timeAxis(longest, width - NAME_WIDTH - 1)}`,
    ...plans.map(({ name, attempts }) =>
      `${clipped(maskControls(name), NAME_WIDTH).padEnd(NAME_WIDTH)} ${attemptRow(attempts, longest, width - NAME_WIDTH - 1)}`.trimEnd(),
    ),
  ]
  const line = (label: string, cells: readonly string[]): string =>
    `${label.padEnd(LABEL_WIDTH)}${cells.map((cell) => clipped(cell, CELL_WIDTH).padEnd(CELL_WIDTH + 1)).join('')}`.trimEnd()
  const table = [
    line(
      '',
      plans.map(({ name }) => maskControls(name)),
    ),
    ...rowsOf(plans).map(([label, cells]) => line(label, cells)),
  ]
  return [...plot, '', ...table, ...notes(plans)].map((text) => `${text}\n`).join('')
}

function notes(plans: readonly Plan[]): readonly string[] {
  const lost = plans.flatMap(({ name, outages }) =>
    outages
      .filter((outage) => outage.lost > 0.0005 && outage.mean !== null)
      .map(
        (outage) =>
          `† ${maskControls(name)}: ${percent(outage.lost)} of the mail of an outage of ${span(outage.outage)} is returned before it ends`,
      ),
  )
  return ['', 'Waits of mail that arrived when the outage began; the end of the outage varies by a tenth.', ...lost]
}
