/** The one event that an operator asks to be sent again. */
import { ANY_EVENT, eventSelector } from '../events/event-filter.ts'
import { readCursor, type EventSeq } from '../events/kept-event.ts'
import type { OutboxReader } from '../store/outbox-store.ts'
import type { Subscription } from '../store/outbox/subscription.ts'

/** The event is not kept, or a replay of it would not be a repetition (EX_DATAERR). */
export class EventRefused extends Error {
  override readonly name = 'EventRefused'
  readonly exitCode = 65
}

/** Number of the event with an id. Rejects with EventRefused unless the subscription has had it. */
export async function oneEvent(
  reader: Pick<OutboxReader, 'eventsAfter'>,
  { name, settings, progress }: Pick<Subscription, 'name' | 'settings' | 'progress'>,
  id: string,
): Promise<EventSeq> {
  const position = readCursor(id)
  const { seq } = position ?? { seq: 0 }
  const { epoch, events } = await reader.eventsAfter({ after: Math.max(0, seq - 1), limit: 1, filter: ANY_EVENT })
  const event = events.find((one) => one.seq === seq)
  if (event === undefined || position?.epoch !== epoch) throw new EventRefused(`no event ${id} is kept: GET /events has the kept ones`)
  if (settings.to === '') throw new EventRefused(`${name} has no target: its program reads the events itself`)
  if (!eventSelector(settings)(event)) throw new EventRefused(`${name} does not select the event ${id}, of the type ${event.type}`)
  if (seq > progress.cursor)
    throw new EventRefused(`the event ${id} waits in its order: deferd webhook replay ${name} sends what waits now`)
  return seq
}
