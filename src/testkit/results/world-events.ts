/** Events of a world as programs get them. */
import type { EventFilter } from '../../events/event-filter.ts'
import type { TypedEvent } from '../../events/event-types.ts'
import { dataOf } from '../../events/event-values.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import { inSeconds } from '../options/time.ts'
import { BEGINNING } from '../virtual/virtual-clock.ts'

/** An event with its number, which is the order of the commits, and its time in seconds since the start of the world. */
export type WorldEvent = TypedEvent & { readonly seq: number; readonly at: number }

const READ_AT_ONCE = 1_000

export async function publishedEvents(reader: Pick<QueueReader, 'eventsAfter'>, filter: EventFilter): Promise<readonly WorldEvent[]> {
  const found: WorldEvent[] = []
  for (let [after, isDone] = [0, false]; !isDone;) {
    const { events, through, last } = await reader.eventsAfter({ after, limit: READ_AT_ONCE, filter })
    for (const event of events)
      found.push({ seq: event.seq, at: inSeconds(event.at - BEGINNING), type: event.type, data: dataOf(event) } as WorldEvent)
    after = through
    isDone = through >= last
  }
  return found
}
