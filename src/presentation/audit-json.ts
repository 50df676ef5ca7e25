/** Formats a record of the audit log as JSON. */
import type { AuditRecord } from '../store/audit-log.ts'
import { epochSeconds } from './text.ts'

export const auditJson = ({ at, who, action, arguments: words, changed }: AuditRecord) => ({
  time: epochSeconds(at),
  who,
  action,
  arguments: words,
  changed,
})

export type AuditJson = ReturnType<typeof auditJson>
