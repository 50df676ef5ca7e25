/** Events as programs get them: from the admin API, as requests to a target, and in files. */
import type { EventType } from '../events/event-types.ts'
import { dataOf } from '../events/event-values.ts'
import { eventId, lostEventId, type KeptEvent, type LostEvents } from '../events/kept-event.ts'
import type { Instant } from '../system/clock.ts'
import { isoTime } from './text.ts'

export interface EventJson {
  /** Equal each time the event is sent, and the position after it. */
  readonly id: string
  readonly type: EventType
  /** ISO 8601, UTC. */
  readonly timestamp: string
  readonly data: unknown
}

/** An event with a time of the wall clock. */
export const eventJson = (epoch: number, event: KeptEvent): EventJson => ({
  id: eventId(epoch, event.seq),
  type: event.type,
  timestamp: isoTime(event.at),
  data: dataOf(event),
})

/** The event that tells of deleted ones. `at` is the time of the wall clock. */
export const lostJson = (epoch: number, lost: LostEvents, at: Instant): EventJson => ({
  id: lostEventId(epoch, lost),
  type: 'events.lost',
  timestamp: isoTime(at),
  data: { from: lost.from, to: lost.to, count: lost.count },
})
