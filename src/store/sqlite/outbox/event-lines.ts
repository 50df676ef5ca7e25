/**
 * Rows of events. The events of a transaction share rows, because a row costs more than the text of an event: a statement, and its part of
 * the pages that each transaction writes again. A row has one line for each event, with its type, its time and its data; the number of
 * the last one is the key of the row.
 */
import { storedType, type EventSeq, type KeptEvent, type NewEvent } from '../../../events/kept-event.ts'
import type { QueueTime } from '../../../system/clock.ts'

/** Maximum number of events in a row, so that a reader of few events decodes few. */
export const EVENTS_IN_ROW = 100

export interface EventLinesRow {
  /** Number of the last event. */
  readonly last: EventSeq
  /** The earliest time of an event. */
  readonly at: QueueTime
  readonly lines: string
}

const eventLine = ({ type, at, data }: NewEvent): string => `${type} ${at} ${data}`

/** A row of events, at least one, in order. */
export function eventRow(last: EventSeq, events: readonly NewEvent[]): EventLinesRow {
  return { last, at: events.reduce((earliest, { at }) => Math.min(earliest, at), Infinity), lines: events.map(eventLine).join('\n') }
}

/** The events of a row, in order. */
export function eventsIn({ last, lines }: Pick<EventLinesRow, 'last' | 'lines'>): readonly KeptEvent[] {
  const found = lines.split('\n')
  return found.map((line, n) => eventOf(last - found.length + 1 + n, line))
}

function eventOf(seq: EventSeq, line: string): KeptEvent {
  const afterType = line.indexOf(' ')
  const afterTime = line.indexOf(' ', afterType + 1)
  const at = Number(line.slice(afterType + 1, afterTime))
  return { seq, at, type: storedType(line.slice(0, afterType)), data: line.slice(afterTime + 1) }
}
