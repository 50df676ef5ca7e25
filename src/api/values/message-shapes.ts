/** Shapes of queued messages, their pages and counts, and of the answer to a submission, for the OpenAPI document. Members are only ever added. */
import { z } from 'zod'
import { count, next, textOrNull, time, timeOrNull } from './answer-parts.ts'

const recipient = z.object({
  orig_address: z.string().optional(),
  address: z.string(),
  bounce_reason: z.string().optional(),
  delay_reason: z.string().optional(),
  destination: z.string().nullable(),
  state: z.enum(['waiting', 'leased', 'parked', 'delivered', 'bounced', 'expired', 'removed']),
  attempts: count,
  next_attempt_time: timeOrNull,
  last_status: textOrNull,
  leased_by: z.string().optional().describe('name of the node that delivers'),
})

export const message = z.object({
  queue_name: z.enum(['maildrop', 'incoming', 'active', 'deferred', 'hold', 'corrupt', 'trash', 'gone']),
  queue_id: z.string(),
  arrival_time: z.int(),
  message_size: count,
  forced_expire: z.boolean(),
  sender: z.string(),
  recipients: z.array(recipient),
  expire_time: timeOrNull,
  attempts: count,
  next_attempt_time: timeOrNull,
})

/** A line of the whole listing. */
export const messageLine = message.extend({ delay_reason: z.string().optional() }).meta({ id: 'MessageLine' })

export const messagePage = z
  .object({
    messages: z.array(message.extend({ recipient_count: count.describe('all recipients; the list has at most 20') })),
    next,
    as_of: time,
  })
  .meta({ id: 'MessagePage' })

export const messageCount = z
  .object({ count, at_least: z.boolean().describe('true when the count ended early') })
  .meta({ id: 'MessageCount' })

/** Answer to a message that is on disk. */
export const accepted = z
  .object({
    queue_id: z.string(),
    message_id: textOrNull,
    recipients: z.array(z.object({ address: z.string(), destination: z.string() })),
    rejected: z.array(z.object({ address: z.string(), reason: z.string() })).describe('recipients that are no addresses, with `partial`'),
  })
  .meta({ id: 'Accepted' })
