/** All destinations with mail or a recorded state. */
import { nextEvent, type DestinationJson } from '../../resources/destination-json.ts'
import { bar } from '../markup/charts.ts'
import { heading, pager, type Screen } from '../markup/frame.ts'
import { choice, field } from '../markup/fields.ts'
import { html, type Html, type Part } from '../../presentation/html.ts'
import { destinationLink, linkTo } from '../markup/links.ts'
import { marked, toneOf } from '../markup/marks.ts'
import { replyPart } from '../markup/reply.ts'
import { table, type Column } from '../markup/html-table.ts'
import { count, due, probeDue } from '../markup/times.ts'
import type { View } from '../markup/view.ts'

export interface DestinationsFacts {
  readonly destinations: readonly DestinationJson[]
  readonly next: string | null
  readonly query: { readonly name: string; readonly order: string; readonly after: string }
}

/** `in 4m`, `probe in 4m`; `resumes` is the word before the end of a suspension. */
export function nextPart(view: View, one: Parameters<typeof nextEvent>[0], resumes: string): Part {
  const next = nextEvent(one)
  switch (next?.kind) {
    case undefined:
      return '–'
    case 'operator':
      return 'when resumed'
    case 'resume':
      return html`${resumes}${due(view, next.at)}`
    case 'probe':
      return probeDue(view, next.at)
    case 'attempt':
      return due(view, next.at)
  }
}

/** The state; of a destination that refuses all mail, with that fact. */
export const stateCell = ({ state, refuses_all: refuses }: Pick<DestinationJson, 'refuses_all'> & { readonly state: string }): Html =>
  refuses ? marked('refusing', `${state}, no delivery`) : marked(state)

/** Reason of a suspension, or the reply for which mail waits; null for other states. */
const wordOf = ({ state, suspend_reason: reason, last_reply: reply }: DestinationJson): string | null =>
  state === 'suspended' ? reason : reply

const columnsOf = (view: View, most: number): readonly Column<DestinationJson>[] => [
  {
    heading: 'Destination',
    isTitle: true,
    cell: ({ destination }) => html`<a href="${destinationLink(view, destination)}">${destination}</a>`,
  },
  { heading: 'State', cell: stateCell },
  {
    heading: 'Waiting',
    kind: 'number',
    cell: ({ waiting, destination, state, refuses_all: refuses }) =>
      html`<a href="${linkTo(view, 'messages', { destination })}">${count(waiting)}</a
        >${waiting === 0 ? null : bar(waiting / most, toneOf(refuses ? 'refusing' : state))}`,
  },
  { heading: 'In flight', kind: 'number', cell: ({ in_flight: flight, window }) => `${count(flight)}/${window ?? '–'}` },
  { heading: 'Next', cell: (one) => nextPart(view, one, 'resumes ') },
]

/** Column of the texts of wordOf, hidden while no destination on the page has one. */
const WORDS: Column<DestinationJson> = {
  heading: 'Last reply',
  kind: 'reply',
  cell: (one) => replyPart(wordOf(one), { hint: one.hint }),
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

export function destinationsScreen(view: View, { destinations, next, query }: DestinationsFacts): Screen {
  const most = Math.max(1, ...destinations.map(({ waiting }) => waiting))
  const isFiltered = query.name !== ''
  return {
    title: 'Destinations',
    place: 'destinations',
    main: html`${heading('Destinations', 'A destination is the next hop of mail: a domain, or a host of the configuration.')}
    ${filterForm(view, query)}
    ${table({
      caption: 'Destinations',
      columns: [...columnsOf(view, most), ...(destinations.some((one) => wordOf(one) !== null) ? [WORDS] : [])],
      rows: destinations,
      kind: 'where',
      empty: isFiltered ? 'No destination matches.' : 'No destination has mail, and none is dead or suspended.',
    })}
    ${pager(view, 'destinations', query, { next, isFirst: query.after === '' })}`,
  }
}
