/** Formats a record of the audit log as JSON. */
import type { AuditEntry } from '../store/audit-log.ts'
import type { WallView } from '../system/wall-view.ts'

export const auditJson = ({ at, node, who, action, arguments: words, changed }: AuditEntry, wall: WallView) => ({
  time: wall.seconds(at),
  node: node ?? undefined,
  who,
  action,
  arguments: words,
  changed,
})

export type AuditJson = ReturnType<typeof auditJson>
