/** Words for the events after the position of a subscription, for the page and commands. */
import type { SubscriptionJson } from './subscription-json.ts'
import { plural } from '../presentation/text.ts'

type Choice = Pick<SubscriptionJson, 'types' | 'destinations' | 'senders'>

/** False for a subscription that leaves some events out. */
export const takesAll = ({ types, destinations, senders }: Choice): boolean =>
  types.every((type) => type === '*') && destinations.length === 0 && senders.length === 0

/** `12 events`; `12 events of all types`, when some of them are left out by the subscription. */
export const eventsBehind = (one: Choice & Pick<SubscriptionJson, 'behind'>): string =>
  `${plural(one.behind, 'event')}${takesAll(one) ? '' : ' of all types'}`
