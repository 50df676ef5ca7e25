/**
 * Data of events as the queue keeps them: a JSON list of the values in the order of EVENTS, without the nulls at its end. It has half
 * the octets of an object.
 */
import { EVENTS, type EventType } from './event-types.ts'
import type { KeptEvent } from './kept-event.ts'
import type { EventData } from './published-kinds.ts'

export function keptData<T extends EventType>(type: T, data: EventData[T]): string {
  const members = data as Readonly<Record<string, unknown>>
  const values = EVENTS[type].members.map((name) => members[name])
  while (values.at(-1) === null) values.pop()
  return JSON.stringify(values)
}

const valuesIn = ({ data }: Pick<KeptEvent, 'data'>): readonly unknown[] => JSON.parse(data) as readonly unknown[]

/** The data of a kept event, with all members of its type. */
export function dataOf(event: Pick<KeptEvent, 'type' | 'data'>): EventData[EventType] {
  const values = valuesIn(event)
  return Object.fromEntries(EVENTS[event.type].members.map((name, n) => [name, values[n] ?? null])) as unknown as EventData[EventType]
}

/** One value of the data; undefined when the type has no such member. */
export function valueOf(event: Pick<KeptEvent, 'type' | 'data'>, name: 'destination' | 'sender'): unknown {
  const names: readonly string[] = EVENTS[event.type].members
  const n = names.indexOf(name)
  return n < 0 ? undefined : valuesIn(event)[n]
}
