/** Cells about subscriptions to events, which several screens share. */
import { eventsBehind } from '../../../resources/events-behind.ts'
import type { SubscriptionJson } from '../../../resources/subscription-json.ts'
import { html, type Html, type Part } from '../../../presentation/html.ts'
import { linkTo } from '../../markup/links.ts'
import { marked } from '../../markup/marks.ts'
import { count, distance, due, instantOf, plural, span } from '../../markup/times.ts'
import type { View } from '../../markup/view.ts'
import { breakable } from '../../markup/long-words.ts'

export const subscriptionPlace = (name: string): string => `webhooks/${encodeURIComponent(name)}`

export const subscriptionLink = (view: View, name: string): string => linkTo(view, subscriptionPlace(name))

/** `failing` while the target has refused the next event at least once. */
export const stateOf = ({ state, tries }: Pick<SubscriptionJson, 'state' | 'tries'>): 'active' | 'failing' | 'disabled' =>
  state === 'disabled' ? 'disabled' : tries > 0 ? 'failing' : 'active'

export const stateMark = (one: Pick<SubscriptionJson, 'state' | 'tries'>): Html => {
  const state = stateOf(one)
  return state === 'active' ? marked('open', state, 'events are sent as they happen') : marked(state)
}

/** `https://…`, or the words for events that are only read. */
export const targetOf = ({ to }: Pick<SubscriptionJson, 'to'>): Part =>
  to === '' ? 'read by programs' : html`<span class="reply">${breakable(to)}</span>`

/** Number of events after the position, of any type, and the age of the oldest. */
export const behindOf = (view: View, { name, to, behind, oldest_time: oldest }: SubscriptionJson): Part =>
  to === ''
    ? '–'
    : html`<span data-live="subscriptions/${encodeURIComponent(name)}/behind" data-form="count">${count(behind)}</span>
        <span class="faint" data-live="subscriptions/${encodeURIComponent(name)}/oldest_time" data-form="since"
          >${behind === 0 || oldest === null ? null : `for ${span(Math.max(0, view.now - instantOf(oldest)))}`}</span
        >`

export const lastAnswer = (view: View, { last_answer: text, last_answer_time: time }: SubscriptionJson): Part =>
  text === null
    ? 'none yet'
    : html`<span class="reply">${breakable(text)}</span>${time === null ? null : html` <span class="faint">${distance(view, time)}</span>`}`

/** Failed tries of the next event, and the time of the next one. */
export const triesOf = (view: View, { tries, next_try_time: next }: SubscriptionJson): Part =>
  tries === 0
    ? null
    : html`${count(tries)} failed ${tries === 1 ? 'try' : 'tries'}${next === null ? null : html`, the next ${due(view, next)}`}`

/** Failed tries, over half a minute, after which a target needs an operator. */
const TRIES_UNTIL_ATTENTION = 4

/** Condition of a subscription that needs an operator; null for other subscriptions. */
export function conditionOf({ state, parked, tries }: Pick<SubscriptionJson, 'state' | 'parked' | 'tries'>) {
  if (state === 'disabled') return 'disabled'
  if (tries >= TRIES_UNTIL_ATTENTION) return 'failing'
  return parked > 0 ? 'parked' : null
}

/** Reason why a subscription needs an operator; null for other subscriptions. */
export function trouble(view: View, one: SubscriptionJson): Html | null {
  const { name, parked } = one
  const refused = parked === 0 ? '' : `; it refused ${plural(parked, 'event')} before`
  const lag = `it is ${eventsBehind(one)} behind`
  switch (conditionOf(one)) {
    case 'disabled':
      return html`The events of ${name} are not sent: ${one.why ?? 'disabled'}; ${lag}${refused}`
    case 'parked':
      return html`The target of ${name} refused ${plural(parked, 'event')}`
    case 'failing':
      return html`The target of ${name} does not take events: ${one.last_answer ?? ''}; ${lag}, ${triesOf(view, one)}${refused}`
    case null:
      return null
  }
}
