/** All destinations with mail or a recorded state. */
import type { DestinationValue } from './shown-values.ts'
import { bar } from '../markup/charts.ts'
import { heading, pager, type Screen } from '../markup/frame.ts'
import { choice, field } from '../markup/fields.ts'
import { html, type Html, type Part } from '../../presentation/html.ts'
import { destinationLink, linkTo } from '../markup/links.ts'
import { marked, toneOf } from '../markup/marks.ts'
import { table, type Column } from '../markup/html-table.ts'
import { count, due } from '../markup/times.ts'
import type { View } from '../markup/view.ts'

export interface DestinationsFacts {
  readonly destinations: readonly DestinationValue[]
  readonly next: string | null
  readonly query: { readonly name: string; readonly order: string; readonly after: string }
}

/** Time of the next attempt, of the probe, or of the end of the suspension. */
export function nextOf(
  view: View,
  { state, dead_until: dead, suspended_until: until, next_due_time: next, waiting }: DestinationValue,
): Part {
  if (state === 'suspended') return until === null ? 'when resumed' : html`resumes ${due(view, until)}`
  if (state === 'dead' && dead !== null) return html`probe ${due(view, dead)}`
  return next === null || waiting === 0 ? '–' : due(view, next)
}

/** Reason of a suspension, or the reply for which a destination is closed; null for other states. */
const wordOf = ({ state, suspend_reason: reason, last_reply: reply }: DestinationValue): string | null =>
  state === 'suspended' ? reason : reply

const columnsOf = (view: View, most: number): readonly Column<DestinationValue>[] => [
  {
    heading: 'Destination',
    isTitle: true,
    cell: ({ destination }) => html`<a href="${destinationLink(view, destination)}">${destination}</a>`,
  },
  { heading: 'State', cell: ({ state }) => marked(state) },
  {
    heading: 'Waiting',
    kind: 'number',
    cell: ({ waiting, destination, state }) =>
      html`<a href="${linkTo(view, 'messages', { destination })}">${count(waiting)}</a
        >${waiting === 0 ? null : bar(waiting / most, toneOf(state))}`,
  },
  { heading: 'In flight', kind: 'number', cell: ({ in_flight: flight, window }) => `${count(flight)}/${window ?? '–'}` },
  { heading: 'Next', cell: (one) => nextOf(view, one) },
]

/** Column of the texts of wordOf, hidden while no destination on the page has one. */
const WORDS: Column<DestinationValue> = {
  heading: 'Last reply',
  kind: 'code',
  cell: (one) => {
    const text = wordOf(one)
    return text === null ? null : html`<span class="reply">${text}</span>`
  },
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
