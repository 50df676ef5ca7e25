/** Formats a record of the audit log as JSON. */
import type { AuditEntry } from '../store/audit-log.ts'
import { epochSeconds } from './text.ts'

export const auditJson = ({ at, node, who, action, arguments: words, changed }: AuditEntry) => ({
  time: epochSeconds(at),
  node: node ?? undefined,
  who,
  action,
  arguments: words,
  changed,
})

export type AuditJson = ReturnType<typeof auditJson>
