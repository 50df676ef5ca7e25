/** The newest events for programs, with their receivers. */
import type { SubscriptionJson } from '../../../resources/subscription-json.ts'
import type { LatestEvents, ReceivedEventJson } from '../../../queries/subscriptions.ts'
import type { TimedEventJson } from '../../../resources/event-json.ts'
import { EVENT_TYPES } from '../../../events/event-types.ts'
import { asRequest } from '../../markup/command-lines.ts'
import { downloads } from '../../markup/downloads.ts'
import { choice, field, rangeField } from '../../markup/fields.ts'
import { heading, listOr, section, type Screen } from '../../markup/frame.ts'
import { html, joined, type Html, type Part } from '../../../presentation/html.ts'
import { shapeOf } from '../../markup/marks.ts'
import { replyPart } from '../../markup/reply.ts'
import { table, type Column } from '../../markup/html-table.ts'
import { linkTo, messageLink, providerLink, queryText, type Query } from '../../markup/links.ts'
import { clockTime, plural } from '../../markup/times.ts'
import { instantText, type TimeRange } from '../../markup/time-range.ts'
import type { View } from '../../markup/view.ts'
import { conditionOf, subscriptionLink, subscriptionPlace } from './subscription-marks.ts'
import { addressPart, breakable, destinationPart } from '../../markup/long-words.ts'

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
  readonly latest: LatestEvents
  readonly query: EventsQuery
  /** The instants of `query`. */
  readonly range: TimeRange
  readonly problem: string | null
}

type Members = Readonly<Record<string, unknown>>

const textIn = (data: Members, name: string): string | null => {
  const value = data[name]
  return typeof value === 'string' && value !== '' ? value : null
}

/** The message, destination or provider that an event is about, or the table of the configuration. */
function subjectOf(view: View, data: Members): Part {
  const [id, destination] = [textIn(data, 'queue_id'), textIn(data, 'destination')]
  const recipient = textIn(data, 'recipient')
  if (id !== null)
    return html`<a href="${messageLink(view, id)}"><code>${id}</code></a
      >${recipient === null ? null : html`<br /><span class="faint">${addressPart(recipient)}</span>`}`
  if (destination !== null) return destinationPart(view, destination)
  const provider = textIn(data, 'provider')
  if (provider !== null) return html`<a href="${providerLink(view, provider)}">${breakable(provider)}</a>`
  const named = textIn(data, 'schedule') ?? textIn(data, 'quota')
  return named === null ? null : breakable(named)
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

/** In characters, of the names of receivers that stand in one line of a row. */
const SHORT_NAMES = 20

/** Links that send an event again, to each of its receivers. Those with long names are folded. */
function repetitions(view: View, { id, receivers }: ReceivedEventJson): Part {
  const links = receivers.map(
    (name) =>
      html`<a class="act long" href="${linkTo(view, `${subscriptionPlace(name)}/replay`, { events: 'one', event: id })}" data-dialog
        >${breakable(name)}…</a
      > `,
  )
  if (receivers.length < 2 || receivers.join().length <= SHORT_NAMES) return links
  return html`<details>
    <summary>${plural(receivers.length, 'webhook')}</summary>
    ${links}
  </details>`
}

/** Columns of events with their receivers, to which an operator may send them again. */
export const repeatableColumns = (view: View): readonly Column<ReceivedEventJson>[] => [
  ...(eventColumns(view) as readonly Column<ReceivedEventJson>[]),
  ...(view.requester.mayOperate
    ? [
        {
          heading: 'Send again to',
          kind: 'actions',
          cell: (one: ReceivedEventJson) => repetitions(view, one),
        } as const,
      ]
    : [
        {
          heading: 'Receivers',
          cell: ({ receivers }: ReceivedEventJson) =>
            joined(receivers.map((name) => html`<a href="${subscriptionLink(view, name)}">${breakable(name)}</a>`)),
        },
      ]),
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

const apiQuery = ({ type, destination, sender }: EventsQuery, { after, before }: TimeRange): Query => ({
  types: type,
  destination,
  sender,
  occurred_after: instantText(after),
  occurred_before: instantText(before),
})

/** The programs that are told, with the number of those that need an operator. */
function receiversPart(view: View, subscriptions: readonly SubscriptionJson[]): Html {
  const troubled = subscriptions.filter((one) => conditionOf(one) !== null).length
  const link = html`<a href="${linkTo(view, 'webhooks')}">Webhooks</a>`
  return troubled === 0
    ? html`${link} shows how far each of them has come.`
    : html`${shapeOf('warning')} ${troubled} of ${plural(subscriptions.length, 'webhook')} ${troubled === 1 ? 'needs' : 'need'} attention:
      ${link}.`
}

/** Says which events were not searched. */
const unsearchedPart = (view: View, { searched_since: since }: LatestEvents): Part =>
  since === null
    ? null
    : html`<p class="faint">
        Events before ${clockTime(view, since)} were not searched: choose an earlier end of the range, or take the file.
      </p>`

export const eventsScreen = (view: View, { subscriptions, keptTypes, latest, query, range, problem }: EventsFacts): Screen => ({
  title: 'Events',
  place: 'events',
  main: html`${heading('Events', html`What programs are told. ${receiversPart(view, subscriptions)}`)}
  ${section(
    'Newest events',
    html`${filterForm(view, { query, range })}${listOr(
      problem,
      () =>
        html`${table({
          caption: 'The newest events',
          columns: repeatableColumns(view),
          rows: latest.events,
          kind: 'events',
          empty: Object.values(query).every((value) => value === '') ? 'There are no events.' : 'No event matches.',
        })}${unsearchedPart(view, latest)}${downloads(view, 'events', apiQuery(query, range))}`,
    )}`,
    { aside: kept(keptTypes) },
  )}
  ${asRequest({ method: 'GET', path: `api/v1/events${queryText(apiQuery(query, range))}` })}`,
})
