/** Events as programs get them: from the admin API, as requests to a target, and in files. */
import { z } from 'zod'
import { EVENT_TYPES } from '../events/event-types.ts'
import { dataOf } from '../events/event-values.ts'
import { eventId, eventTime, lostEventId, type KeptEvent, type LostEvents } from '../events/kept-event.ts'
import type { ToldAddresses } from '../mail/told-addresses.ts'
import type { ListedEvent } from '../events/wire-events.ts'
import { isoTime } from '../presentation/text.ts'
import type { ParkedEvent } from '../store/outbox/subscription.ts'
import { SECOND, type WallTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { count, next, time, timeOrNull, type Json } from './members.ts'
import { keptTypes } from './subscription-json.ts'

/** An event for programs. The data have the members that docs/events.md lists for the type. */
export const eventShape = z
  .object({
    id: z.string().describe('equal each time the event is sent, and the position after it'),
    type: z.enum(EVENT_TYPES),
    timestamp: z.string().describe('ISO 8601, UTC'),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'Event' })

/** A webhook with one event: its id is the field `webhook-id`. */
export const webhookBodyShape = eventShape
  .omit({ id: true })
  .extend({ type: z.enum([...EVENT_TYPES, 'test']) })
  .meta({ id: 'WebhookBody' })

/** Form of the events that programs get. */
export interface EventTerms {
  readonly wall: WallView
  readonly addresses: ToldAddresses
}

export const eventJson = (epoch: number, event: KeptEvent, { wall, addresses }: EventTerms): ListedEvent =>
  ({
    id: eventId(epoch, event.seq),
    type: event.type,
    timestamp: isoTime(eventTime(event, wall)),
    data: addresses.value(dataOf(event)),
  }) as ListedEvent

/** The event that reports deleted events. */
export const lostJson = (epoch: number, lost: LostEvents, at: WallTime): ListedEvent => ({
  id: lostEventId(epoch, lost),
  type: 'events.lost',
  timestamp: isoTime(at),
  data: { from: lost.from, to: lost.to, count: lost.count },
})

export const eventPageShape = z
  .object({
    events: z.array(eventShape),
    next: z
      .string()
      .nullable()
      .describe(
        'position after the page, also when nothing follows yet; null when `occurred_before` is over a minute ago and nothing can follow',
      ),
    kept_types: keptTypes,
    as_of: time,
  })
  .meta({ id: 'EventPage' })

/** An event with its time in seconds. */
export type TimedEventJson = ListedEvent & { readonly time: number }

export const timedEventJson = (epoch: number, event: KeptEvent, terms: EventTerms): TimedEventJson => ({
  ...eventJson(epoch, event, terms),
  time: eventTime(event, terms.wall) / SECOND,
})

const parking = { tries: count, parked_time: time, next_try_time: timeOrNull, answer: z.string() }

export const parkedPageShape = z
  .object({ events: z.array(eventShape.extend({ number: count, time, ...parking })), next })
  .meta({ id: 'ParkedEvents' })

export type ParkedEventJson = TimedEventJson & { readonly number: number } & Json<z.ZodObject<typeof parking>>

export const parkedJson = (epoch: number, { event, tries, parkedAt, dueAt, answer }: ParkedEvent, terms: EventTerms): ParkedEventJson => ({
  number: event.seq,
  time: eventTime(event, terms.wall) / SECOND,
  ...eventJson(epoch, event, terms),
  tries,
  parked_time: terms.wall.seconds(parkedAt),
  next_try_time: terms.wall.secondsOrNull(dueAt),
  answer: terms.addresses.value(answer),
})
