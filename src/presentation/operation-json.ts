/** Formats an operation, and a record of the audit log with all its members, as JSON. */
import type { AuditEntry } from '../store/audit-log.ts'
import type { WallView } from '../system/wall-view.ts'
import { auditJson } from './audit-json.ts'

/** Members that records and operations share. */
const stateJson = (entry: AuditEntry, wall: WallView) => ({
  id: entry.id,
  state: entry.state,
  matched: entry.matched,
  in_transfer: entry.inTransfer,
  unknown: entry.unknown,
  expected: entry.expected,
  reason: entry.reason,
  last_time: wall.seconds(entry.lastAt),
  undo_until: wall.secondsOrNull(entry.undoUntil),
  undoes: entry.undoes,
  undone_by: entry.undoneBy,
  error: entry.error,
  node: entry.node,
})

export const operationJson = (entry: AuditEntry, wall: WallView) => ({
  ...stateJson(entry, wall),
  operation: entry.action,
  arguments: entry.arguments,
  changed: entry.changed,
  who: entry.who,
  time: wall.seconds(entry.at),
})

export type OperationJson = ReturnType<typeof operationJson>

/** A record with the members of `deferd audit --json` first. */
export const auditEntryJson = (entry: AuditEntry, wall: WallView) => ({ ...auditJson(entry, wall), ...stateJson(entry, wall) })

export type AuditEntryJson = ReturnType<typeof auditEntryJson>
