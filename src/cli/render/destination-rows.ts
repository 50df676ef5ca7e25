/** Destinations as a table for people, with the reason of a state below its destination, and as tab-separated values. Pure. */
import type { WallTime } from '../../system/clock.ts'
import { nextEvent, type DestinationJson } from '../../resources/destination-json.ts'
import { stateText, undeliveredText } from '../../presentation/destination-state.ts'
import { roleOfDestination, type Display } from './style.ts'
import { tableHeading, tableRow, widthBeside, type Column } from './table.ts'
import { grouped, instantOf, isoTime, maskControls, plural, span } from '../../presentation/text.ts'
import { hanging } from './wrapping.ts'

interface TableFacts {
  readonly now: WallTime
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

/** Reason of the state: that of the suspension, or the reply of the host, after the attempts of a host that refuses all mail. Empty for none. */
const reasonOf = (one: DestinationJson, now: WallTime): string =>
  one.state === 'suspended' ? stateText(one, now) : [undeliveredText(one, now), one.site_reason].filter((text) => text !== null).join(': ')

const activeOf = ({ window, in_flight: inFlight }: DestinationJson): string =>
  window === null ? String(inFlight) : `${inFlight}/${window}`

/** Time of the next attempt, of the probe, or of the end of the suspension; null for none. */
function nextAt(one: DestinationJson): WallTime | null {
  const at = nextEvent(one)?.at ?? null
  return at === null ? null : instantOf(at)
}

function nextText(one: DestinationJson, now: WallTime): string {
  const at = nextAt(one)
  if (at === null) return '-'
  return at <= now ? 'now' : span(at - now, 2)
}

/** The table. `hidden` is the number of destinations that it leaves out. */
export function destinationTable(rows: readonly DestinationJson[], hidden: number, { now, display }: TableFacts): string {
  const idle = hidden === 0 ? '' : `${plural(hidden, 'idle destination')} not shown (--all)\n`
  if (rows.length === 0)
    return idle === '' ? 'No destination has queued mail or recorded state.\n' : `No destination has queued mail.\n${idle}`
  const longest = rows.reduce((most, { destination }) => Math.max(most, destination.length), 'DESTINATION'.length)
  const width = Math.max(8, Math.min(longest, LONGEST_NAME, widthBeside(FIGURES, display)))
  const columns: readonly Column[] = [{ heading: 'DESTINATION', width, cut: 'middle' }, ...FIGURES]
  const lines = rows.flatMap((row) => {
    const { destination, state, waiting } = row
    const figures = [grouped(waiting), activeOf(row), nextText(row, now)]
    const reason = maskControls(reasonOf(row, now)).trimEnd()
    const role = row.refuses_all ? 'bad' : roleOfDestination[state]
    const line = tableRow([destination, [state, role], ...figures], columns, display)
    return reason === '' ? [line] : [line, ...hanging(' '.repeat(INDENT), reason, { width: display.width, indent: INDENT })]
  })
  return `${[tableHeading(columns, display), ...lines].join('\n')}\n${idle}`
}

/** Name, waiting, in flight, window, next attempt, state and reason, exact and separated by tabs. */
export function destinationValues(one: DestinationJson, now: WallTime): string {
  const at = nextAt(one)
  const counts = [one.waiting, one.in_flight, one.window ?? '-', at === null ? '-' : isoTime(at)]
  return [one.destination, ...counts, one.state, reasonOf(one, now)].map((cell) => maskControls(String(cell))).join('\t')
}
