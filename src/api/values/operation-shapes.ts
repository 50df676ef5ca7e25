/** Shapes of operations, their plans and their records, for the OpenAPI document. Members are only ever added. */
import { z } from 'zod'
import { count, next, textOrNull, time, timeOrNull } from './answer-parts.ts'
import { message } from './message-shapes.ts'

const operationState = {
  id: z.int(),
  state: z.enum(['running', 'done', 'failed', 'cancelled']),
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
}

export const operation = z
  .object({ ...operationState, operation: z.string(), arguments: z.string(), changed: count, who: z.string(), time })
  .meta({ id: 'Operation' })

const auditEntry = z.object({ time, who: z.string(), action: z.string(), arguments: z.string(), changed: count, ...operationState })

export const auditPage = z.object({ records: z.array(auditEntry), next, as_of: time }).meta({ id: 'AuditPage' })

export const operationPlan = z
  .object({
    operation: z.string(),
    dry_run: z.literal(true),
    plan: z.object({
      token: z.string(),
      matched: count,
      unknown: count.describe('ids found neither in the queue nor in the trash'),
      bytes: count,
      oldest: z.int().nullable().describe('arrival of the oldest message'),
      in_transfer: count.describe('messages of which a recipient is in transfer: delivered and bounced stand'),
      destinations: count,
      examples: z.array(message.extend({ recipient_count: count })),
      told_senders: z.boolean(),
      undo: timeOrNull.describe('time until which the operation could be undone'),
    }),
  })
  .meta({ id: 'OperationPlan' })
