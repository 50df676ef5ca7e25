/** Events as programs get them: from the admin API, as requests to a target, and in files. */
import { dataOf } from '../events/event-values.ts'
import { eventId, lostEventId, type KeptEvent, type LostEvents } from '../events/kept-event.ts'
import type { ListedEvent } from '../events/wire-events.ts'
import type { Instant } from '../system/clock.ts'
import { isoTime } from './text.ts'

/** An event with a time of the wall clock. */
export const eventJson = (epoch: number, event: KeptEvent): ListedEvent =>
  ({ id: eventId(epoch, event.seq), type: event.type, timestamp: isoTime(event.at), data: dataOf(event) }) as ListedEvent

/** The event that tells of deleted ones. `at` is the time of the wall clock. */
export const lostJson = (epoch: number, lost: LostEvents, at: Instant): ListedEvent => ({
  id: lostEventId(epoch, lost),
  type: 'events.lost',
  timestamp: isoTime(at),
  data: { from: lost.from, to: lost.to, count: lost.count },
})
