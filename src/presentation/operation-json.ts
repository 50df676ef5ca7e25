/** Formats an operation, and a record of the audit log with all its members, as JSON. */
import type { AuditEntry } from '../store/audit-log.ts'
import type { Instant } from '../system/clock.ts'
import { auditJson } from './audit-json.ts'
import { epochSeconds } from './text.ts'

const secondsOrNull = (at: Instant | null): number | null => (at === null ? null : epochSeconds(at))

/** Members that a record and an operation have in common. */
const stateJson = ({
  id,
  state,
  matched,
  inTransfer,
  unknown,
  expected,
  reason,
  lastAt,
  undoUntil,
  undoes,
  undoneBy,
  error,
  node,
}: AuditEntry) => ({
  id,
  state,
  matched,
  in_transfer: inTransfer,
  unknown,
  expected,
  reason,
  last_time: epochSeconds(lastAt),
  undo_until: secondsOrNull(undoUntil),
  undoes,
  undone_by: undoneBy,
  error,
  node,
})

export const operationJson = (entry: AuditEntry) => ({
  ...stateJson(entry),
  operation: entry.action,
  arguments: entry.arguments,
  changed: entry.changed,
  who: entry.who,
  time: epochSeconds(entry.at),
})

export type OperationJson = ReturnType<typeof operationJson>

/** A record with the members of `deferd audit --json` first. */
export const auditEntryJson = (entry: AuditEntry) => ({ ...auditJson(entry), ...stateJson(entry) })

export type AuditEntryJson = ReturnType<typeof auditEntryJson>
