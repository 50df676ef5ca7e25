/** Events as programs get them: from the admin API, as requests to a target, and in files. */
import { dataOf } from '../events/event-values.ts'
import { eventId, eventTime, lostEventId, type KeptEvent, type LostEvents } from '../events/kept-event.ts'
import type { ListedEvent } from '../events/wire-events.ts'
import type { WallTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { isoTime } from './text.ts'

export const eventJson = (epoch: number, event: KeptEvent, wall: WallView): ListedEvent =>
  ({ id: eventId(epoch, event.seq), type: event.type, timestamp: isoTime(eventTime(event, wall)), data: dataOf(event) }) as ListedEvent

/** The event that reports deleted events. */
export const lostJson = (epoch: number, lost: LostEvents, at: WallTime): ListedEvent => ({
  id: lostEventId(epoch, lost),
  type: 'events.lost',
  timestamp: isoTime(at),
  data: { from: lost.from, to: lost.to, count: lost.count },
})
