/** Events for programs: the subscriptions with their lag and last answers, and the newest events. */
import type { SubscriptionJson } from '../../resources/subscription-json.ts'
import type { TimedEventJson } from '../../resources/event-json.ts'
import { EVENT_TYPES } from '../../events/event-types.ts'
import { asCommand } from '../markup/command-lines.ts'
import { choice, field, rangeField } from '../markup/fields.ts'
import { heading, section, type Screen } from '../markup/frame.ts'
import { html, type Html, type Part } from '../../presentation/html.ts'
import { shapeOf } from '../markup/marks.ts'
import { replyPart } from '../markup/reply.ts'
import { table, type Column } from '../markup/html-table.ts'
import { destinationLink, linkTo, messageLink } from '../markup/links.ts'
import { clockTime, count } from '../markup/times.ts'
import type { TimeRange } from '../markup/time-range.ts'
import type { View } from '../markup/view.ts'
import { behindOf, lastAnswer, stateMark, subscriptionLink, targetOf } from './subscription-marks.ts'

interface EventsQuery {
  readonly type: string
  readonly destination: string
  readonly sender: string
  readonly occurred_after: string
  readonly occurred_before: string
}

interface EventsFacts {
  readonly subscriptions: readonly SubscriptionJson[]
  readonly keptTypes: readonly string[]
  readonly events: readonly TimedEventJson[]
  readonly query: EventsQuery
  /** The instants of `query`. */
  readonly range: TimeRange
  readonly problem: string | null
}

const figure = (name: string, member: 'parked' | 'lost', value: number): Part =>
  html`<span data-live="subscriptions/${encodeURIComponent(name)}/${member}" data-form="count">${count(value)}</span>`

const columnsOf = (view: View): readonly Column<SubscriptionJson>[] => [
  { heading: 'Subscription', isTitle: true, cell: ({ name }) => html`<a href="${subscriptionLink(view, name)}">${name}</a>` },
  { heading: 'State', cell: stateMark },
  { heading: 'Behind', kind: 'number', cell: (one) => behindOf(view, one) },
  { heading: 'Parked', kind: 'number', cell: ({ name, parked }) => figure(name, 'parked', parked) },
  { heading: 'Lost', kind: 'number', cell: ({ name, lost }) => figure(name, 'lost', lost) },
  { heading: 'Last answer', kind: 'code', cell: (one) => lastAnswer(view, one) },
  { heading: 'Sent to', kind: 'code', cell: targetOf },
]

type Members = Readonly<Record<string, unknown>>

const textIn = (data: Members, name: string): string | null => {
  const value = data[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/** The message or destination that an event is about. */
function subjectOf(view: View, data: Members): Part {
  const [id, destination] = [textIn(data, 'queue_id'), textIn(data, 'destination')]
  const recipient = textIn(data, 'recipient')
  if (id !== null)
    return html`<a href="${messageLink(view, id)}"><code>${id}</code></a
      >${recipient === null ? null : html`<br /><span class="address faint">${recipient}</span>`}`
  return destination === null ? null : html`<a href="${destinationLink(view, destination)}">${destination}</a>`
}

/** Members that describe an event best, in order. Of several, the first with a text: an attempt without a reply has a reason. */
const DETAILS = [['operation'], ['by'], ['notice'], ['reply', 'reason'], ['text']] as const

export function detailOf(type: string, data: Members): string {
  if (type === 'events.lost') return `${String(data['count'])} events`
  const found = DETAILS.flatMap((names) => names.flatMap((name) => textIn(data, name) ?? []).slice(0, 1))
  return found.length > 0 ? found.join(' · ') : (textIn(data, 'sender') ?? '')
}

export const eventColumns = (view: View): readonly Column<TimedEventJson>[] => [
  { heading: 'Time', cell: ({ time }) => clockTime(view, time) },
  { heading: 'Type', isTitle: true, cell: ({ type }) => type },
  { heading: 'About', cell: ({ data }) => subjectOf(view, data as Members) },
  { heading: 'Detail', kind: 'reply', cell: ({ type, data }) => replyPart(detailOf(type, data as Members)) },
]

const GROUPS = [...new Set(EVENT_TYPES.map((type) => `${type.split('.')[0] ?? ''}.*`))]

const filterForm = (view: View, { query: { type, destination, sender, ...query }, range }: Pick<EventsFacts, 'query' | 'range'>): Html =>
  html`<form class="filter" action="${linkTo(view, 'events')}" method="get">
    ${choice('Type', 'type', type, [{ value: '', text: 'any' }, ...[...GROUPS, ...EVENT_TYPES].map((one) => ({ value: one, text: one }))])}
    ${field({ name: 'destination', label: 'Destination', value: destination, example: '*.example.com' })}
    ${field({ name: 'sender', label: 'Sender', value: sender, example: '*@example.com' })}
    ${rangeField(view, { name: 'occurred_after', label: 'From', value: query.occurred_after, at: range.after })}
    ${rangeField(view, { name: 'occurred_before', label: 'To', value: query.occurred_before, at: range.before })}
    <button type="submit">Show</button>
  </form>`

const kept = (types: readonly string[]): string =>
  types.length === 0
    ? 'No event is kept, because nobody has subscribed to one.'
    : types.length === EVENT_TYPES.length
      ? 'Events of all types are kept.'
      : `Only events of these types are kept: ${types.join(', ')}.`

export const eventsScreen = (view: View, { subscriptions, keptTypes, events, query, range, problem }: EventsFacts): Screen => ({
  title: 'Events',
  place: 'events',
  live: { path: 'api/v1/subscriptions' },
  main: html`${heading('Events', 'What programs are told, and how far each of them has come.')}
  ${section(
    'Subscriptions',
    table({
      caption: 'Subscriptions to events',
      columns: columnsOf(view),
      rows: subscriptions,
      kind: 'subscriptions',
      empty: 'No program has subscribed. deferd webhook add, or an [events.NAME] table, subscribes one.',
    }),
  )}
  ${section(
    'Newest events',
    html`${filterForm(view, { query, range })}${problem === null ? null : html`<p class="problem" role="alert">${shapeOf('warning')} ${problem}</p>`}${table(
      {
        caption: 'The newest events',
        columns: eventColumns(view),
        rows: events,
        kind: 'events',
        empty: Object.values(query).every((value) => value === '') ? 'There are no events.' : 'No recent event matches.',
      },
    )}`,
    { aside: kept(keptTypes) },
  )}
  ${asCommand(['webhook', 'list'], { method: 'GET', path: 'api/v1/subscriptions' })}`,
})
