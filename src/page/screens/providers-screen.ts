/** Providers of mailboxes, and one of them with the destinations whose mail waits there. */
import type { DestinationJson } from '../../resources/destination-json.ts'
import type { FewDestinations, ShownProvider } from '../../queries/providers.ts'
import type { ProviderDetailsJson, ProviderJson } from '../../resources/provider-json.ts'
import { rateFact } from '../../presentation/destination-state.ts'
import { html, joined, type Html, type Part } from '../../presentation/html.ts'
import { bar } from '../markup/charts.ts'
import { asCommand } from '../markup/command-lines.ts'
import { answer, buttonLink, heading, section, type Screen } from '../markup/frame.ts'
import { facts, table, type Column } from '../markup/html-table.ts'
import { linkTo, providerLink } from '../markup/links.ts'
import { marked, toneOf } from '../markup/marks.ts'
import { replyPart } from '../markup/reply.ts'
import { count, countUpTo, due, plural, waits } from '../markup/times.ts'
import type { View } from '../markup/view.ts'
import { destinationTable } from './destinations-screen.ts'
import { breakable, destinationPart } from '../markup/long-words.ts'

const actionOf = (view: View, { provider, state }: ProviderJson, kind: string): Html | null => {
  if (!view.requester.mayOperate) return null
  const place = providerLink(view, provider)
  return state === 'suspended' ? buttonLink(`${place}/resume`, 'Resume…', kind) : buttonLink(`${place}/suspend`, 'Suspend…', kind)
}

const activeText = ({ in_flight: flight, limit }: ProviderJson): string => `${count(flight)}${limit === null ? '' : `/${count(limit)}`}`

const endPart = (view: View, until: number | null): Part => (until === null ? 'until it is resumed' : html`ends ${due(view, until)}`)

const namesPart = (view: View, names: readonly string[]): Part => joined(names.map((name) => destinationPart(view, name)))

/** Place of the destinations with waiting mail on the screen of a provider. */
const WHERE = 'where'

/** The known destinations: few by name, more by their number, which leads to those with waiting mail. */
function destinationsPart(view: View, { provider, names, destinations, largest_destinations: largest }: ListedProvider): Part {
  if (names !== null) return names.length === 0 ? 'none known yet' : namesPart(view, names)
  return html`<a href="${providerLink(view, provider)}#${WHERE}">${count(destinations)} known</a
    >${largest.length === 0 ? null : html`<span class="faint">, most mail: ${namesPart(view, largest)}</span>`}`
}

type ListedProvider = ProviderJson & FewDestinations

const columnsOf = (view: View, most: number): readonly Column<ListedProvider>[] => [
  {
    heading: 'Provider',
    isTitle: true,
    cell: ({ provider }) => html`<a href="${providerLink(view, provider)}">${breakable(provider)}</a>`,
  },
  {
    heading: 'State',
    cell: ({ state, suspended_by: by, suspended_until: until, suspend_reason: reason }) =>
      html`${marked(state)}${by === null ? null : html` <span class="faint">${endPart(view, until)}${reason === null ? null : `: ${reason}`}</span>`}`,
  },
  { heading: 'Recipients', kind: 'number', cell: ({ waiting, state }) => html`${count(waiting)}${bar(waiting / most, toneOf(state))}` },
  { heading: 'In flight', kind: 'number', cell: activeText },
  { heading: 'Rate', kind: 'number', cell: ({ message_rate: rate }) => (rate === null ? '–' : `${count(rate)}/min`) },
  { heading: 'Destinations', kind: 'parties', cell: (one) => destinationsPart(view, one) },
  { heading: 'Action', label: '', kind: 'actions', cell: (one) => actionOf(view, one, 'small') },
]

/** The action of a reply rule with its end, and the reply that it answered. */
export const rulePart = (view: View, { action, until, reply }: ProviderJson['rules'][number]): Html =>
  html`${action}, ends ${due(view, until)}: ${replyPart(reply)}`

const ruleColumn = (view: View): Column<ProviderJson> => ({
  heading: 'Reply rules that apply',
  kind: 'reply',
  cell: ({ rules }) => rules.map((one) => html`<div>${one.rule}: ${rulePart(view, one)}</div>`),
})

const PATH = 'api/v1/providers'

const NO_TABLE =
  'The configuration has no table [provider.NAME]. With one, the domains whose mail exchangers are of one operator share its limits.'

export const providersScreen = (view: View, providers: readonly ListedProvider[]): Screen => ({
  title: 'Providers',
  place: 'providers',
  live: { path: PATH },
  main: html`${heading('Providers', 'A provider has the mailboxes of many domains: its limits, rules and suspension are for all of them together.')}
  ${table({
    caption: 'Providers',
    columns: [...columnsOf(view, Math.max(1, ...providers.map(({ waiting }) => waiting))), ruleColumn(view)],
    rows: providers,
    kind: 'providers',
    renewedBy: ({ provider }) => provider,
    empty: NO_TABLE,
  })}
  ${asCommand(['provider', 'list'], { method: 'GET', path: PATH })}`,
})

/** `205 recipients wait for 3 of 6 known destinations.`; the destinations with mail are at least those that the resource names. */
function waitingSentence({ waiting, destinations, waiting_destinations: named }: ProviderDetailsJson): string {
  if (waiting === 0) return `No mail waits; it has ${plural(destinations, 'known destination')}.`
  const isAtLeast = named.reduce((sum, one) => sum + one.waiting, 0) < waiting
  const places = named.length === destinations ? '' : `${countUpTo(named.length, isAtLeast)} of `
  return `${waits(waiting)} for ${places}${plural(destinations, 'known destination')}.`
}

/** Empty unless all destinations with waiting mail refuse it. */
const refusalText = (destinations: readonly DestinationJson[]): string =>
  destinations.length > 0 && destinations.every((one) => one.refuses_all) ? ' Nothing was delivered in the last attempts there.' : ''

/** The state in a sentence, with what may be done. */
function sentenceOf(view: View, { provider: one, destinations }: ShownProvider): Html {
  const mail = `${waitingSentence(one)}${refusalText(destinations)}`
  switch (one.state) {
    case 'suspended':
      return answer(
        html`Suspended by ${one.suspended_by ?? 'an operator'},
        ${endPart(view, one.suspended_until)}${one.suspend_reason === null ? null : `: ${one.suspend_reason}`}. ${mail}`,
        'No delivery to any of its destinations begins. Mail still expires at the end of its lifetime.',
      )
    case 'throttled':
      return answer(html`Throttled: fewer deliveries are made to its destinations. ${mail}`)
    case 'open':
      return answer(html`Open: deliveries begin when mail is due and its destination admits them. ${mail}`)
  }
}

export function providerScreen(view: View, shown: ShownProvider): Screen {
  const { provider: one, destinations } = shown
  const path = `${PATH}/${encodeURIComponent(one.provider)}`
  return {
    title: one.provider,
    place: 'providers',
    live: { path },
    main: html`${heading(html`<span class="name">${one.provider}</span> ${marked(one.state)}`, 'Provider of mailboxes', actionOf(view, one, one.state === 'suspended' ? 'primary' : ''))}
      ${sentenceOf(view, shown)}
      ${facts(
        [
          ...one.rules.map((rule) => [`rule ${rule.rule}`, rulePart(view, rule), 'wide'] as const),
          [
            'waiting',
            html`<span data-live="waiting" data-form="count">${count(one.waiting)}</span>
              ${one.waiting === 1 ? 'recipient' : 'recipients'}`,
          ],
          [
            'in flight',
            html`<span data-live="in_flight" data-form="count">${count(one.in_flight)}</span
              >${one.limit === null ? null : ` of ${count(one.limit)} at once`}`,
          ],
          ['message rate', rateFact(one.message_rate)],
          ['node', one.node],
          ['known destinations', one.names === null || one.names.length === 0 ? null : namesPart(view, one.names), 'wide'],
          ['mail exchangers', one.mx.join(', '), 'wide'],
        ],
        'facts',
      )}
      ${section('Where it waits', destinationTable(view, destinations, 'No mail waits for a known destination of this provider.'), { id: WHERE })}
      <p class="faint"><a href="${linkTo(view, 'causes')}">Causes over all destinations</a></p>
      ${asCommand(['provider', 'show', one.provider], { method: 'GET', path })}`,
  }
}
