/** The text of events in the log: records of `log_format = "json"`, and lines of `log_format = "postfix"`. */
import { recordOf, type Level, type LineOptions, type LogLine } from '../events/event-kind.ts'
import { kindOf, type QueueEvent } from './events.ts'

interface LogRecord {
  readonly level: Level
  readonly members: Readonly<Record<string, unknown>>
}

/** The JSON records of an event: one per recipient for attempts and deferrals, none for kinds that are not logged, else one. */
export function logRecords(event: QueueEvent): readonly LogRecord[] {
  const kind = kindOf(event)
  if (kind.record === null) return []
  const { record, levelOf, rows } = kind
  const level = levelOf?.(event) ?? kind.level
  return (rows?.(event) ?? [event]).map((row) => ({ level, members: recordOf(record, row, { event: event.kind }) }))
}

/** The lines of an event in Postfix's format. Events unknown to Postfix have lines of the same style. */
export const postfixLines = (event: QueueEvent, options: LineOptions = {}): readonly LogLine[] => kindOf(event).lines(event, options)
