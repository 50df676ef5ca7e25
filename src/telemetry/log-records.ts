/** The text of events in the log: records of `log_format = "json"`, and lines of `log_format = "postfix"`. */
import type { ToldAddresses } from '../mail/told-addresses.ts'
import { recordOf, type Level, type LineOptions, type LogLine } from '../events/event-kind.ts'
import { kindOf, type QueueEvent } from './events.ts'

interface LogRecord {
  readonly level: Level
  readonly members: Readonly<Record<string, unknown>>
}

/** The JSON records of an event: one per recipient for attempts and deferrals, none for kinds that are not logged, else one. */
export function logRecords(event: QueueEvent, addresses?: ToldAddresses): readonly LogRecord[] {
  const kind = kindOf(event)
  if (kind.record === null) return []
  const { record, levelOf, rows } = kind
  const level = levelOf?.(event) ?? kind.level
  return (rows?.(event) ?? [event]).map((row) => {
    const members = recordOf(record, row, { event: event.kind })
    return { level, members: addresses?.value(members) ?? members }
  })
}

/** The lines of an event in Postfix's format. Events unknown to Postfix have lines of the same style. */
export function postfixLines(event: QueueEvent, options: LineOptions = {}, addresses?: ToldAddresses): readonly LogLine[] {
  const lines = kindOf(event).lines(event, options)
  if (addresses === undefined || addresses.isFull) return lines
  return lines.map(({ program, text }) => ({ program, text: addresses.line(text) }))
}
