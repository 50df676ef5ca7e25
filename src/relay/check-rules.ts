/** The checks of content of a configuration, for the acceptor and for the SMTP agent. */
import type { CheckTables } from '../checks/check-tables.ts'
import type { ContentRules } from '../checks/checked-content.ts'
import type { Config } from '../config/options.ts'
import type { HeaderChecks } from '../delivery/smtp/outgoing-mail.ts'
import type { Matching } from '../patterns/matching.ts'
import type { Events } from '../telemetry/events.ts'

/** Null when no check applies to arriving mail. */
export function arrivalChecks(config: Config, tables: CheckTables, matching: Matching): ContentRules<'body'> | null {
  if ([...tables.keys()].every((name) => name === 'smtp_header_checks')) return null
  return { changes: 'body', tables, matching, fieldLimit: config.header_size_limit, bodyLimit: config.body_checks_size_limit }
}

/** Null when no check applies to sent mail. */
export function headerChecks(config: Config, all: CheckTables, events: Events, matching: Matching): HeaderChecks | null {
  const table = all.get('smtp_header_checks')
  if (table === undefined) return null
  return {
    rules: { changes: 'header', tables: new Map([['header_checks', table]]), matching, fieldLimit: config.header_size_limit, bodyLimit: 0 },
    report: (queueId) => ({
      took: (action, part, octets, text) =>
        events.emit({ kind: 'content-checked', during: 'delivery', queueId, action, part, octets, text }),
      warn: (text) => events.emit({ kind: 'note', level: 'warning', text }),
    }),
  }
}
