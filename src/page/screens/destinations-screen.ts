/** All destinations with mail or a recorded state. */
import { nextEvent, type DestinationJson } from '../../resources/destination-json.ts'
import { bar } from '../markup/charts.ts'
import { heading, pager, type Screen } from '../markup/frame.ts'
import { downloads } from '../markup/downloads.ts'
import { choice, field } from '../markup/fields.ts'
import { html, type Html, type Part } from '../../presentation/html.ts'
import { linkTo } from '../markup/links.ts'
import { marked, toneOf } from '../markup/marks.ts'
import { replyPart } from '../markup/reply.ts'
import { table, type Column } from '../markup/html-table.ts'
import { count, due, probeDue } from '../markup/times.ts'
import type { View } from '../markup/view.ts'
import { destinationPart } from '../markup/long-words.ts'

/** Orders of the list, the first by default. */
export const DESTINATION_ORDERS = ['waiting', 'name'] as const

export interface DestinationsFacts {
  readonly destinations: readonly DestinationJson[]
  readonly next: string | null
  readonly query: { readonly name: string; readonly order: string; readonly after: string }
}

/** `in 4m`, `probe in 4m`, `being probed`, `resumes in 4m` */
export function nextPart(view: View, one: Parameters<typeof nextEvent>[0] & Pick<DestinationJson, 'probed'>): Part {
  const next = nextEvent(one)
  switch (next?.kind) {
    case undefined:
      return '–'
    case 'operator':
      return 'when resumed'
    case 'resume':
      return html`<span class="whole">resumes ${due(view, next.at)}</span>`
    case 'probe':
      return html`<span class="whole">${one.probed ? 'being probed' : probeDue(view, next.at)}</span>`
    case 'attempt':
      return due(view, next.at)
  }
}

type Owned = Pick<DestinationJson, 'state' | 'window'> & { readonly node?: string | null }

/** The node that does not answer for an open destination, or `none` while no node schedules it; null for another destination. */
export function ownerTrouble({ unanswered }: View, { state, window, node }: Owned): string | null {
  if (unanswered === undefined || node === undefined || state !== 'open' || window !== null) return null
  if (node === null) return 'none'
  return unanswered().includes(node) ? node : null
}

/** The state; of a destination that refuses all mail, with that fact. */
export function stateCell(view: View, one: Owned & Pick<DestinationJson, 'refuses_all'>): Html {
  if (ownerTrouble(view, one) !== null) return marked('warning', 'unknown', 'no node answers for it')
  const { state, refuses_all: refuses } = one
  return refuses ? marked('refusing', `${state}, no delivery`, 'its last attempts delivered nothing') : marked(state)
}

const columnsOf = (view: View, most: number): readonly Column<DestinationJson>[] => [
  {
    heading: 'Destination',
    isTitle: true,
    cell: ({ destination }) => destinationPart(view, destination),
  },
  {
    heading: 'State',
    cell: (one) =>
      html`${stateCell(view, one)}${one.suspend_reason === null ? null : html` <span class="faint">${one.suspend_reason}</span>`}`,
  },
  {
    heading: 'Recipients',
    kind: 'number',
    cell: ({ waiting, destination, state, refuses_all: refuses }) =>
      html`<a href="${linkTo(view, 'messages', { destination })}">${count(waiting)}</a
        >${waiting === 0 ? null : bar(waiting / most, toneOf(refuses ? 'refusing' : state))}`,
  },
  { heading: 'In flight', kind: 'number', cell: ({ in_flight: flight, window }) => `${count(flight)}/${window ?? '–'}` },
  { heading: 'Next', cell: (one) => nextPart(view, one) },
]

const LAST_REPLY: Column<DestinationJson> = {
  heading: 'Last reply',
  kind: 'reply',
  cell: ({ last_reply: reply, hint }) => replyPart(reply, { hint }),
}

const filterForm = (view: View, { name, order }: DestinationsFacts['query']): Html =>
  html`<form class="filter" action="${linkTo(view, 'destinations')}" method="get">
    ${field({ name: 'name', label: 'Name', value: name, example: '*.example.com' })}
    ${choice('Order', 'order', order, [
      { value: 'waiting', text: 'most waiting' },
      { value: 'name', text: 'name' },
    ])}
    <button type="submit">Show</button>
  </form>`

export function destinationTable(view: View, destinations: readonly DestinationJson[], empty: string): Html {
  const most = Math.max(1, ...destinations.map(({ waiting }) => waiting))
  return table({
    caption: 'Destinations',
    columns: [...columnsOf(view, most), LAST_REPLY],
    rows: destinations,
    kind: 'where',
    renewedBy: ({ destination }) => destination,
    empty,
  })
}

export function destinationsScreen(view: View, { destinations, next, query }: DestinationsFacts): Screen {
  const isFiltered = query.name !== ''
  return {
    title: 'Destinations',
    place: 'destinations',
    live: { path: 'api/v1/now' },
    main: html`${heading('Destinations', 'A destination is the next hop of mail: a domain, or a host of the configuration.')}
    ${filterForm(view, query)}
    ${destinationTable(view, destinations, isFiltered ? 'No destination matches.' : 'No destination has mail, and none is dead or suspended.')}
    ${pager(view, 'destinations', query, { next, isFirst: query.after === '' })} ${downloads(view, 'destinations', { name: query.name })}`,
  }
}
