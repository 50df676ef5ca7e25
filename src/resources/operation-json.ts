/** Operations, their plans, and the records of the audit log in JSON. */
import { z } from 'zod'
import type { PassedReason } from '../queue/operation-request.ts'
import { OPERATION_STATES, type AuditEntry } from '../store/records/audit-log.ts'
import type { WallView } from '../system/wall-view.ts'
import { count, next, textOrNull, time, timeOrNull, type Json } from './members.ts'
import { pageEntryShape } from './message-json.ts'

const stateMembers = {
  id: z.int(),
  state: z.enum(OPERATION_STATES),
  matched: count.describe('messages selected so far'),
  in_transfer: count.describe('selected messages of which a recipient is in transfer at the end: delivered and bounced stand'),
  unknown: count.describe('ids found neither in the queue nor in the trash'),
  expected: count.nullable().describe('messages of the plan'),
  reason: textOrNull,
  last_time: time,
  undo_until: timeOrNull.describe('null for an operation that cannot be undone'),
  undoes: z.int().nullable(),
  undone_by: z.int().nullable(),
  error: textOrNull,
  node: textOrNull,
  request_id: textOrNull.describe('X-Request-Id of the answer to the request that ordered the action; null for one without a request'),
}

/** Members that operations and records of the audit log share. */
const stateJson = (entry: AuditEntry, wall: WallView): Json<z.ZodObject<typeof stateMembers>> => ({
  id: entry.id,
  state: entry.state,
  matched: entry.matched,
  in_transfer: entry.inTransfer,
  unknown: entry.unknown,
  expected: entry.expected,
  reason: entry.reason,
  last_time: wall.seconds(entry.lastAt),
  undo_until: entry.state !== 'running' && entry.changed === 0 ? null : wall.secondsOrNull(entry.undoUntil),
  undoes: entry.undoes,
  undone_by: entry.undoneBy,
  error: entry.error,
  node: entry.node,
  request_id: entry.requestId,
})

export const operationShape = z
  .object({ ...stateMembers, operation: z.string(), arguments: z.string(), changed: count, who: z.string(), time })
  .meta({ id: 'Operation' })

export type OperationJson = Json<typeof operationShape>

export const operationJson = (entry: AuditEntry, wall: WallView): OperationJson => ({
  ...stateJson(entry, wall),
  operation: entry.action,
  arguments: entry.arguments,
  changed: entry.changed,
  who: entry.who,
  time: wall.seconds(entry.at),
})

export const auditEntryShape = z
  .object({ time, who: z.string(), action: z.string(), arguments: z.string(), changed: count, ...stateMembers })
  .meta({ id: 'AuditRecord' })

export type AuditEntryJson = Json<typeof auditEntryShape>

export function auditEntryJson(entry: AuditEntry, wall: WallView): AuditEntryJson {
  const { node, ...state } = stateJson(entry, wall)
  const { at, who, action, arguments: words, changed } = entry
  return { time: wall.seconds(at), node, who, action, arguments: words, changed, ...state }
}

export const auditPageShape = z.object({ records: z.array(auditEntryShape), next, as_of: time }).meta({ id: 'AuditPage' })

export type AuditPageJson = Json<typeof auditPageShape>

/** Messages that a flush leaves unchanged, by the reason; absent for none. */
export const passedOverMembers = {
  active: count.optional().describe('messages that a flush leaves unchanged because they are in delivery, or claimed for it'),
  due: count.optional().describe('messages that a flush leaves unchanged because they are due already'),
  hold: count.optional().describe('messages that a flush leaves unchanged because they are on hold'),
  scheduled: count.optional().describe('scheduled messages that a flush passes over'),
} satisfies Record<PassedReason, z.ZodType>

const planShape = z.object({
  token: z.string(),
  matched: count,
  recipients: count.describe('recipients of these messages without a final outcome'),
  unknown: count.describe('ids found neither in the queue nor in the trash'),
  bytes: count,
  oldest: z.int().nullable().describe('arrival of the oldest message'),
  in_transfer: count.describe('messages of which a recipient is in transfer: delivered and bounced stand'),
  ...passedOverMembers,
  destinations: count,
  examples: z.array(pageEntryShape),
  told_senders: z.boolean(),
  undo: timeOrNull.describe('time until which the operation could be undone'),
})

export type OperationPlanJson = Json<typeof planShape>

export const operationPlanShape = z
  .object({ operation: z.string(), dry_run: z.literal(true), plan: planShape })
  .meta({ id: 'OperationPlan' })
