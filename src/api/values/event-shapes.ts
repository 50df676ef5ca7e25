/** Shapes of events for programs, and of the subscriptions to them, for the OpenAPI document. Members are only ever added. */
import { EVENT_TYPES } from '../../events/event-types.ts'
import { z } from 'zod'
import { count, next, textOrNull, time, timeOrNull } from './answer-parts.ts'

export const subscription = z
  .object({
    name: z.string(),
    owner: z.enum(['configuration', 'command']),
    to: z.string().describe('target; empty for events that are only read'),
    types: z.array(z.string()).describe('patterns of types; empty for all'),
    destinations: z.array(z.string()),
    senders: z.array(z.string()),
    format: z.enum(['deferd', 'cloudevents']),
    batch: count,
    state: z.enum(['active', 'disabled']),
    why: textOrNull.describe('why it is disabled'),
    behind: count.describe('kept events after its position, of any type'),
    oldest_time: timeOrNull.describe('time of the first of them'),
    parked: count.describe('events that the target refused'),
    lost: count.describe('deleted events of which it was not told yet'),
    tries: count.describe('failed tries of the next event'),
    next_try_time: timeOrNull,
    last_answer: textOrNull,
    last_answer_ok: z.boolean().nullable(),
    last_answer_time: timeOrNull,
  })
  .meta({ id: 'Subscription' })

/** An event for programs. The data have the members that docs/events.md lists for the type. */
export const event = z
  .object({
    id: z.string().describe('equal each time the event is sent, and the position after it'),
    type: z.enum(EVENT_TYPES),
    timestamp: z.string().describe('ISO 8601, UTC'),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'Event' })

export const eventPage = z
  .object({
    events: z.array(event),
    next: z.string().describe('position after the page, also when nothing follows yet'),
    kept_types: z.array(z.enum(EVENT_TYPES)).describe('types that somebody has subscribed to; others are not kept'),
    as_of: time,
  })
  .meta({ id: 'EventPage' })

export const subscriptionList = z
  .object({
    subscriptions: z.array(subscription),
    kept_types: z.array(z.enum(EVENT_TYPES)).describe('types that somebody has subscribed to; others are not kept'),
    as_of: time,
  })
  .meta({ id: 'Subscriptions' })

export const parkedPage = z
  .object({
    events: z.array(event.extend({ number: count, time, tries: count, parked_time: time, next_try_time: timeOrNull, answer: z.string() })),
    next,
  })
  .meta({ id: 'ParkedEvents' })

export const replay = z
  .object({
    name: z.string(),
    replay: z.enum(['waiting', 'parked', 'since']),
    events: count.describe('events that are sent, or would be, before the filter of the subscription'),
    command: z.string().describe('the same as arguments of `deferd`'),
    dry_run: z.boolean(),
    subscription: subscription.describe('before the replay'),
    as_of: time,
  })
  .meta({ id: 'Replay' })
