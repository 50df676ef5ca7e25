/** One subscription to events: its state, the events that its target refused, and the replay of events in its steps. */
import type { LatestEvents } from '../../../queries/subscriptions.ts'
import { replayMembers } from '../../../queries/operations/replay-request.ts'
import type { ParkedEventJson } from '../../../resources/event-json.ts'
import { takesAll } from '../../../resources/events-behind.ts'
import type { SubscriptionJson } from '../../../resources/subscription-json.ts'
import { EVENT_TYPES } from '../../../events/event-types.ts'
import { REFUSALS_UNTIL_PARKED } from '../../../subscriptions/answer-decision.ts'
import { selectedTypes } from '../../../events/event-filter.ts'
import { replayArguments, type Replayed } from '../../../subscriptions/subscription-changes.ts'
import { asCommand } from '../../markup/command-lines.ts'
import { field, hidden } from '../../markup/fields.ts'
import { buttonLink, heading, pager, section, type Screen } from '../../markup/frame.ts'
import { html, type Html, type Part } from '../../../presentation/html.ts'
import { facts, table, type Column } from '../../markup/html-table.ts'
import { linkTo } from '../../markup/links.ts'
import { shapeOf } from '../../markup/marks.ts'
import { age, count, due, plural } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'
import { eventColumns, repeatableColumns } from './events-screen.ts'
import { behindOf, lastAnswer, stateMark, stateOf, subscriptionPlace, targetOf, triesOf } from './subscription-marks.ts'
import { breakable } from '../../markup/long-words.ts'

interface SubscriptionFacts {
  readonly subscription: SubscriptionJson
  readonly parked: { readonly events: readonly ParkedEventJson[]; readonly next: string | null }
  readonly latest: LatestEvents
  /** Cursor of the page of parked events; empty for the first. */
  readonly after: string
  /** Events that a replay has just begun to send; null for none. */
  readonly replayed: (Pick<ReplayFacts, 'count'> & { readonly kind: Replayed['kind'] }) | null
}

const parkedColumns = (view: View): readonly Column<ParkedEventJson>[] => [
  ...(eventColumns(view) as readonly Column<ParkedEventJson>[]),
  { heading: 'Tries', kind: 'number', cell: ({ tries }) => count(tries) },
  { heading: 'Answer', kind: 'code', cell: ({ answer }) => html`<span class="reply">${breakable(answer)}</span>` },
  { heading: 'Next try', cell: ({ next_try_time: next }) => (next === null ? 'when asked for' : due(view, next)) },
]

function buttons(view: View, one: SubscriptionJson): readonly Html[] {
  const { name, to, behind, parked, owner } = one
  if (!view.requester.mayOperate || to === '') return []
  const change = (verb: string, text: string): Html => buttonLink(linkTo(view, `${subscriptionPlace(name)}/${verb}`), text)
  const link = (events: string, text: string, kind = ''): Html =>
    buttonLink(linkTo(view, `${subscriptionPlace(name)}/replay`, { events }), text, kind)
  const isStopped = stateOf(one) !== 'active'
  return [
    ...(isStopped || behind > 0 ? [link('waiting', one.state === 'disabled' ? 'Enable…' : 'Send now…', isStopped ? 'primary' : '')] : []),
    ...(parked > 0 ? [link('parked', 'Send parked…')] : []),
    change('test', 'Test…'),
    ...(view.requester.mayAdminister && owner === 'command' ? [change('secret', 'New secret…'), change('remove', 'Remove…')] : []),
  ]
}

const sinceForm = (view: View, name: string, since: string): Html =>
  html`<form class="filter" action="${linkTo(view, `${subscriptionPlace(name)}/replay`)}" method="get" data-dialog>
    ${hidden({ events: 'since' })} ${field({ name: 'since', label: 'Events of the last', value: since, example: '2h', isRequired: true })}
    <button type="submit">Replay…</button>
  </form>`

const PARKED_FROM = `An event is parked after ${REFUSALS_UNTIL_PARKED} refusals with 4xx, and the next ones are sent.`

const allTypes = (types: readonly string[]): boolean => selectedTypes(types).length === EVENT_TYPES.length

const listed = (patterns: readonly string[], otherwise: string): string => (patterns.length === 0 ? otherwise : patterns.join(', '))

export function subscriptionScreen(view: View, { subscription, parked, latest, after, replayed }: SubscriptionFacts): Screen {
  const { name, owner, to, types, destinations, senders, format, batch, why, lost, oldest_time: oldest } = subscription
  const place = subscriptionPlace(name)
  const again = !view.requester.mayOperate || to === '' ? null : sinceForm(view, name, '')
  return {
    title: `Webhook ${name}`,
    place: 'webhooks',
    main: html`${heading(
      html`${name} ${stateMark(subscription)}`,
      owner === 'configuration' ? `Of the table [events.${name}] in the configuration.` : 'Added by an operator.',
      buttons(view, subscription),
    )}
    ${
      replayed === null
        ? null
        : html`<p class="result" role="status">
            ${shapeOf('done')} It was asked to send ${figuresOf(subscription, replayed)}. The
            <a href="${linkTo(view, 'audit')}">audit log</a> has who asked for it.
          </p>`
    }
    ${facts([
      ['sent to', targetOf(subscription), 'wide'],
      ['last answer', lastAnswer(view, subscription), 'wide'],
      ['why', why],
      ['events behind', html`${behindOf(view, subscription)}${subscription.to === '' || takesAll(subscription) ? null : ' of all types'}`],
      ['oldest event', to === '' || oldest === null ? null : html`${age(view, oldest)}`],
      ['tries', triesOf(view, subscription)],
      ['lost', lost === 0 ? null : `${plural(lost, 'event')}, of which it is told first`],
      ['types', allTypes(types) ? 'all' : types.join(', ')],
      ['destinations', listed(destinations, 'all')],
      ['senders', listed(senders, 'all')],
      ['format', `${format}${batch > 1 ? `, up to ${count(batch)} events in a request` : ''}`],
    ])}
    ${section(
      'Parked events',
      html`${table({
        caption: 'Events that the target refused',
        columns: parkedColumns(view),
        rows: parked.events,
        kind: 'events',
        empty: `No event is parked. ${to === '' ? 'A program reads them itself.' : PARKED_FROM}`,
      })}${pager(view, place, {}, { next: parked.next, isFirst: after === '' })}`,
    )}
    ${section(
      'Newest events',
      table({
        caption: 'The newest events that it selects',
        columns: repeatableColumns(view),
        rows: latest.events,
        kind: 'events',
        empty: 'No event is one that it selects.',
      }),
    )}
    ${again === null ? null : section('Send events again', again)}
    ${asCommand(['webhook', 'list', '--json'], { method: 'GET', path: `api/v1/subscriptions/${encodeURIComponent(name)}` })}`,
  }
}

export interface ReplayFacts {
  readonly subscription: SubscriptionJson
  readonly events: Replayed
  readonly count: number
}

const ABOUT: Readonly<Record<Replayed['kind'], string>> = {
  waiting: 'The next event is tried at once, then those behind it.',
  parked: 'Each of them is tried once more, with the id that it had.',
  one: 'It is sent at once, with the id that it had. The program may have had it.',
  since: 'They are sent again in their order, with the ids that they had, then those behind them. The program gets events that it has had.',
}

/** The filter of a subscription; null without one. */
function selectionOf({ types, destinations, senders }: SubscriptionJson): string | null {
  const parts = [
    ...(allTypes(types) ? [] : [`the types ${types.join(', ')}`]),
    ...(destinations.length === 0 ? [] : [`the destinations ${destinations.join(', ')}`]),
    ...(senders.length === 0 ? [] : [`the senders ${senders.join(', ')}`]),
  ]
  return parts.length === 0 ? null : `those of ${parts.join(', and of ')}`
}

/** Parked events have passed the filter. Of others, those that it leaves out are counted too. */
function figuresOf(subscription: SubscriptionJson, { kind, count: number }: NonNullable<SubscriptionFacts['replayed']>): string {
  const all = plural(number, 'event')
  return kind === 'parked' || kind === 'one' || selectionOf(subscription) === null ? all : `what it selects of ${all}`
}

function titleOf(replay: ReplayFacts): string {
  const { name, state } = replay.subscription
  const { kind } = replay.events
  const figures = figuresOf(replay.subscription, { kind, count: replay.count })
  if (kind === 'parked') return `Send ${figures} that ${name} refused?`
  if (kind === 'since') return `Send ${figures} to ${name} again?`
  if (kind === 'one') return `Send one event to ${name} again?`
  return state === 'disabled' ? `Enable ${name}, and send ${figures}?` : `Send ${figures} to ${name} now?`
}

export function replayScreen(view: View, replay: ReplayFacts): Screen {
  const { subscription, events, count: number } = replay
  const { name, to, state } = subscription
  const path = `${subscriptionPlace(name)}/replay`
  const asked = replayMembers(events)
  return {
    title: titleOf(replay),
    place: 'webhooks',
    main: html`<div class="panel" data-panel>
      <h1>${titleOf(replay)}</h1>
      <p>${ABOUT[events.kind]}</p>
      ${facts([
        ['events', html`<strong>${count(number)}</strong>`],
        ['selected', events.kind === 'one' ? null : selectionOf(subscription), 'wide'],
        ['sent to', to, 'wide'],
        ['state', state === 'disabled' ? 'disabled: it is enabled by this' : null],
        ['of the last', asked.since],
        ['event', asked.event, 'wide'],
        ['undo', html`<strong>not possible</strong>`],
      ] satisfies readonly (readonly [string, Part, 'wide'?])[])}
      <form method="post" action="${linkTo(view, path)}">
        ${hidden(asked)}
        <p class="buttons">
          <button type="submit" class="primary">
            ${state === 'disabled' ? 'Enable and send' : 'Send'} ${figuresOf(subscription, { kind: events.kind, count: number })}
          </button>
          <a class="button" href="${linkTo(view, subscriptionPlace(name))}" data-close>Cancel</a>
        </p>
      </form>
      ${asCommand(['webhook', 'replay', ...replayArguments(name, events)], {
        method: 'POST',
        path: `api/v1/subscriptions/${encodeURIComponent(name)}/replay`,
        body: asked,
      })}
    </div>`,
  }
}

/** A replay whose time or event was not understood, with the form of the time as it was sent. */
export const replayProblem = (view: View, name: string, since: string): Screen => ({
  title: 'Replay',
  place: 'webhooks',
  main: html`<div class="panel" data-panel>
    <h1>Which events?</h1>
    <p class="problem" role="alert">
      ${shapeOf('warning')} Expected a time such as 30m, 2h or 1d, or the id of an event. Nothing was changed.
    </p>
    ${since === '' ? null : sinceForm(view, name, since)}
    <p class="buttons"><a class="button" href="${linkTo(view, subscriptionPlace(name))}" data-close>Back</a></p>
  </div>`,
})
