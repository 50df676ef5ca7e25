/**
 * Shapes of what happened to a message and what will happen, and of messages that have left the queue, for the OpenAPI document. Members are
 * only ever added.
 */
import { z } from 'zod'
import { count, failureClass, hint, next, textOrNull, time } from './answer-parts.ts'
import { message } from './message-shapes.ts'
import { operation } from './operation-shapes.ts'

const attempt = z.object({
  time,
  recipient: z.string(),
  host: textOrNull,
  stage: z.string(),
  reply: textOrNull,
  status: z.string(),
  class: failureClass.nullable(),
  hint,
  outcome: z.string(),
  delays: z.array(z.number()),
  reason: z.string(),
  tls: z
    .object({
      level: z.string(),
      policy: z.enum(['config', 'dane', 'sts', 'none']).describe('source of the level'),
      state: z.enum(['undecided', 'clear', 'encrypted', 'trusted', 'verified', 'not-offered', 'refused']),
      protocol: textOrNull,
      cipher: textOrNull,
      reason: textOrNull,
    })
    .nullable()
    .describe('TLS of the session with the host; null when no host was chosen'),
})

const future = z.object({
  recipient: z.string(),
  attempts: z.array(time).describe('coming attempts while the recipient stays deferred; at most 500'),
  planned: count.describe('all coming attempts'),
  warnings: z.array(time).describe('delay warnings to the sender'),
  expire_time: time.describe('time at which the sender gets the message back'),
})

export const messageStory = message
  .extend({
    history: z.array(attempt),
    rule: textOrNull,
    waits_for: z.enum(['due-time', 'delivery', 'probe', 'resume', 'release', 'inspection', 'restore', 'nothing']),
    message_id: textOrNull.describe('Message-ID of the header'),
    client: textOrNull.describe('name and address of the client that sent the message'),
    sasl_username: textOrNull.describe('user of the login of that client'),
    operations: z.array(operation).describe('the last operations on the message, the newest first'),
    future: z.array(future).describe('recipients that wait for attempts; with `retry_jitter`, one of the possible schedules'),
  })
  .meta({ id: 'Message' })

/** A line of the whole history. */
export const departedMessage = z
  .object({
    queue_id: z.string(),
    arrival_time: z.int(),
    left_time: time,
    message_size: count,
    sender: z.string(),
    message_id: textOrNull,
    recipients: z.array(
      z.object({
        address: z.string(),
        destination: z.string(),
        outcome: z.string(),
        time,
        attempts: count,
        last_status: textOrNull,
        class: failureClass.nullable(),
        hint,
        reply: textOrNull,
        reason: textOrNull,
      }),
    ),
  })
  .meta({ id: 'DepartedMessage' })

export const historyPage = z.object({ messages: z.array(departedMessage), next, as_of: time }).meta({ id: 'HistoryPage' })
