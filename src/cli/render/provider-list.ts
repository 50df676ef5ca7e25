/** Providers of mailboxes as a table, and one of them in full. Pure. */
import type { WallTime } from '../../system/clock.ts'
import { rateText, suspensionText } from '../../presentation/destination-state.ts'
import { grouped, instantOf, maskControls, plural, relative } from '../../presentation/text.ts'
import type { ProviderDetailsJson, ProviderJson } from '../../resources/provider-json.ts'
import { roleOfDestination, type Display } from './style.ts'
import { columnsFor, tableHeading, tableRow } from './table.ts'
import { hanging } from './wrapping.ts'

interface ListFacts {
  readonly now: WallTime
  readonly display: Display
}

const HEADINGS = ['PROVIDER', 'STATE', 'WAITING', 'ACTIVE', 'RATE', 'DESTINATIONS']
/** In characters. */
const [INDENT, NAMES] = [4, 14]

const activeOf = ({ in_flight: inFlight, limit }: ProviderJson): string => `${inFlight}${limit === null ? '' : `/${limit}`}`

const stateText = ({ state, suspended_by: by, suspended_until: until, suspend_reason: reason }: ProviderJson, now: WallTime): string =>
  by === null ? state : suspensionText({ by, until: until === null ? null : instantOf(until), reason }, now)

/** The table, with the suspension of a provider below it. */
export function providerTable(providers: readonly ProviderJson[], { now, display }: ListFacts): string {
  if (providers.length === 0) return 'The configuration has no table [provider.NAME].\n'
  const rows = providers.map((one) => [
    one.provider,
    [one.state, roleOfDestination[one.state]] as const,
    grouped(one.waiting),
    activeOf(one),
    one.message_rate === null ? '-' : `${Number(one.message_rate.toFixed(1))}/min`,
    grouped(one.destinations),
  ])
  const columns = columnsFor(HEADINGS, rows, display)
  const lines = providers.flatMap((one, n) => [
    tableRow(rows[n] ?? [], columns, display),
    ...(one.suspended_by === null
      ? []
      : hanging(' '.repeat(INDENT), maskControls(stateText(one, now)), { width: display.width, indent: INDENT })),
  ])
  return `${[tableHeading(columns, display), ...lines].join('\n')}\n`
}

export function providerScreen(one: ProviderDetailsJson, { now, display: { width } }: ListFacts): string {
  const facts: readonly (readonly [string, string | null])[] = [
    ['state', stateText(one, now)],
    ['node', one.node],
    ['mx', one.mx.join(', ')],
    ['waiting', plural(one.waiting, 'recipient')],
    ['in flight', `${one.in_flight}${one.limit === null ? '' : ` of at most ${one.limit}`}${rateText(one.message_rate)}`],
    ...one.rules.map(
      ({ rule, action, until, reply }) => [`rule ${rule}`, `${action}, ends ${relative(instantOf(until), now)}: ${reply}`] as const,
    ),
    ['known', plural(one.destinations, 'destination')],
    ...one.waiting_destinations.map(({ destination, waiting }) => ['', `${grouped(waiting)} at ${destination}`] as const),
  ]
  const lines = facts.flatMap(([name, value]) =>
    value === null ? [] : hanging(`  ${name.padEnd(NAMES - 2)}`, maskControls(value), { width, indent: NAMES }),
  )
  return [maskControls(one.provider), ...lines].map((text) => `${text}\n`).join('')
}
