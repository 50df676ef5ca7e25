/** The checks of content of a configuration, for the acceptor and for the SMTP agent. */
import type { CheckTables } from '../checks/check-tables.ts'
import type { ArrivalChecks } from '../checks/checked-content.ts'
import type { Config } from '../config/options.ts'
import type { HeaderChecks } from '../delivery/smtp/checked-header.ts'
import type { Matching } from '../patterns/matching.ts'
import type { Events } from '../telemetry/events.ts'

/** Null when no check applies to arriving mail. */
export function arrivalChecks(config: Config, tables: CheckTables, matching: Matching): ArrivalChecks | null {
  if ([...tables.keys()].every((name) => name === 'smtp_header_checks')) return null
  return { tables, matching, fieldLimit: config.header_size_limit, bodyLimit: config.body_checks_size_limit }
}

/** Null when no check applies to sent mail. */
export function headerChecks(config: Config, tables: CheckTables, events: Events, matching: Matching): HeaderChecks | null {
  const table = tables.get('smtp_header_checks')
  if (table === undefined) return null
  return {
    table,
    matching,
    fieldLimit: config.header_size_limit,
    took: (queueId, action, octets, text) =>
      events.emit({ kind: 'content-checked', during: 'delivery', queueId, action, part: 'header', octets, text }),
    warn: (text) => events.emit({ kind: 'note', level: 'warning', text }),
  }
}
