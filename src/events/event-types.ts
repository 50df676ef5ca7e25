/** Types of the events that programs can subscribe to. */
import { RECIPIENT } from './event-members.ts'
import { MAIL_KINDS, RELAY_KINDS, type EventData, type Published } from './published-kinds.ts'

/** Type of an event: what happened. */
export type EventType = keyof EventData

/** An event with its data. */
export type TypedEvent = { readonly [T in EventType]: { readonly type: T; readonly data: EventData[T] } }[EventType]

const outcome = <T extends `recipient.${string}` & EventType>(type: T, meaning: string) => ({ type, meaning, record: RECIPIENT })

const LOSS: Published<'events.lost', EventData['events.lost']> = {
  type: 'events.lost',
  meaning: 'events were deleted before the subscription had them, because of `event_retention` or `event_limit`',
  record: { from: ({ from }) => from, to: ({ to }) => to, count: ({ count }) => count },
}

/** All types, in the order of the documentation. */
const TYPES = [
  ...Object.values(MAIL_KINDS),
  // Attempts and expiries have one event for each recipient.
  outcome('recipient.delivered', 'a recipient was delivered to the next hop'),
  outcome('recipient.deferred', 'an attempt failed for now; the next one follows'),
  outcome('recipient.bounced', 'a recipient was refused for ever'),
  outcome('recipient.expired', 'the lifetime of a recipient ended, or an operator forced it to end'),
  ...Object.values(RELAY_KINDS),
  LOSS,
]

/** Meaning of each type, and the names of the members of its data in the order in which the queue keeps the values. */
export const EVENTS: Readonly<Record<EventType, { readonly meaning: string; readonly members: readonly string[] }>> = Object.fromEntries(
  TYPES.map(({ type, meaning, record }) => [type, { meaning, members: Object.keys(record) }]),
) as Record<(typeof TYPES)[number]['type'], { meaning: string; members: string[] }>

export const EVENT_TYPES = Object.keys(EVENTS) as readonly EventType[]

export const isEventType = (text: string): text is EventType => Object.hasOwn(EVENTS, text)
