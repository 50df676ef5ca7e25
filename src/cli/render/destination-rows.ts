/** Destinations as a table for people, with the reason of a state below its destination, and as tab-separated values. Pure. */
import type { WallView } from '../../system/wall-view.ts'
import type { QueueTime } from '../../system/clock.ts'
import { nextAt } from '../../queries/destination-list.ts'
import type { DestinationRow } from '../../resources/destination-json.ts'
import { healthOf, siteReason, stateText } from '../../presentation/destination-state.ts'
import { roleOfDestination, type Display } from './style.ts'
import { tableHeading, tableRow, widthBeside, type Column } from './table.ts'
import { grouped, isoTime, maskControls, plural, span } from '../../presentation/text.ts'
import { hanging } from './wrapping.ts'

export interface TableFacts {
  readonly now: QueueTime
  readonly wall: WallView
  readonly display: Display
}

const FIGURES: readonly Column[] = [
  { heading: 'STATE', width: 9 },
  { heading: 'WAITING', width: 9, align: 'right' },
  { heading: 'ACTIVE', width: 7, align: 'right' },
  { heading: 'NEXT', width: 7, align: 'right' },
]
/** In characters. */
const LONGEST_NAME = 60
const INDENT = 4

/** Reason of the state: that of the suspension, or the reply of the host. Empty for none. */
function reasonOf(row: DestinationRow, now: QueueTime): string {
  const { state, siteStatus } = healthOf(row)
  if (state === 'suspended') return stateText(row, now)
  return siteStatus === null ? '' : siteReason(siteStatus)
}

const activeOf = ({ live, load }: DestinationRow): string =>
  live === undefined ? String(load?.leased ?? 0) : `${live.inFlight}/${live.window}`

function nextText(row: DestinationRow, now: QueueTime): string {
  const at = nextAt(row)
  if (at === null) return '-'
  return at <= now ? 'now' : span(at - now, 2)
}

/** The table. `hidden` is the number of destinations that it leaves out. */
export function destinationTable(rows: readonly DestinationRow[], hidden: number, { now, display }: TableFacts): string {
  const idle = hidden === 0 ? '' : `${plural(hidden, 'idle destination')} not shown (--all)\n`
  if (rows.length === 0)
    return idle === '' ? 'No destination has queued mail or recorded state.\n' : `No destination has queued mail.\n${idle}`
  const longest = rows.reduce((most, { name }) => Math.max(most, name.length), 'DESTINATION'.length)
  const width = Math.max(8, Math.min(longest, LONGEST_NAME, widthBeside(FIGURES, display)))
  const columns: readonly Column[] = [{ heading: 'DESTINATION', width, cut: 'middle' }, ...FIGURES]
  const lines = rows.flatMap((row) => {
    const { state } = healthOf(row)
    const figures = [grouped(row.load?.waiting ?? 0), activeOf(row), nextText(row, now)]
    const reason = maskControls(reasonOf(row, now)).trimEnd()
    const line = tableRow([row.name, [state, roleOfDestination[state]], ...figures], columns, display)
    return reason === '' ? [line] : [line, ...hanging(' '.repeat(INDENT), reason, { width: display.width, indent: INDENT })]
  })
  return `${[tableHeading(columns, display), ...lines].join('\n')}\n${idle}`
}

/** Name, waiting, in flight, window, next attempt, state and reason, exact and separated by tabs. */
export function destinationValues(row: DestinationRow, { now, wall }: Pick<TableFacts, 'now' | 'wall'>): string {
  const { live, load } = row
  const at = nextAt(row)
  const counts = [load?.waiting ?? 0, live?.inFlight ?? load?.leased ?? 0, live?.window ?? '-', at === null ? '-' : isoTime(wall.of(at))]
  return [row.name, ...counts, healthOf(row).state, reasonOf(row, now)].map((cell) => maskControls(String(cell))).join('\t')
}
