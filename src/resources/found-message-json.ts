/** Messages that a search has found, in the queue or in the history. */
import { z } from 'zod'
import { shownSender } from '../mail/envelope.ts'
import { FINAL_STATES, LIVE_STATES, QUEUE_NAMES, queueIdOf } from '../mail/message.ts'
import type { MessageDetails } from '../store/queue-reader.ts'
import type { WallView } from '../system/wall-view.ts'
import { count, next, textOrNull, time, timeOrNull, wholeTime, type Json } from './members.ts'
import { RECIPIENTS_SHOWN, recipientCount } from './message-json.ts'

const foundMessageShape = z
  .object({
    queue_id: z.string(),
    queue_name: z.enum([...QUEUE_NAMES, 'trash', 'gone']).describe('`gone`: in the history'),
    arrival_time: z.int(),
    leave_time: timeOrNull.describe('time at which the message left the queue'),
    message_size: count,
    sender: z.string(),
    recipients: z.array(z.object({ address: z.string(), destination: z.string(), state: z.enum([...LIVE_STATES, ...FINAL_STATES]) })),
    recipient_count: recipientCount,
    message_id: textOrNull,
    subject: textOrNull.optional().describe('absent without the right `content`'),
  })
  .meta({ id: 'FoundMessage' })

export type FoundMessageJson = Json<typeof foundMessageShape>

export const foundMessageJson = (
  { message, queue, leftAt, recipients }: MessageDetails,
  wall: WallView,
  content: boolean,
): FoundMessageJson => ({
  queue_id: queueIdOf(message),
  queue_name: queue,
  arrival_time: wholeTime(message.arrivedAt, wall),
  leave_time: wall.secondsOrNull(leftAt),
  message_size: message.size,
  sender: shownSender(message.sender),
  recipients: recipients.slice(0, RECIPIENTS_SHOWN).map(({ address, destination, state }) => ({ address, destination, state })),
  recipient_count: recipients.length,
  message_id: message.messageId ?? null,
  subject: content ? (message.subject ?? null) : undefined,
})

/** The members by which a text is searched. */
export const SEARCHED = ['queue_id', 'message_id', 'address', 'domain', 'subject', 'part_of_address'] as const

export const searchPageShape = z
  .object({
    searched: z.array(z.enum(SEARCHED)).describe('by which the text was searched; `part_of_address` reads all mail'),
    messages: z.array(foundMessageShape),
    progress: z.number().nullable().describe('part of all mail that was read, from 0 to 1; null for a search by the index'),
    next,
    as_of: time,
  })
  .meta({ id: 'SearchPage' })

export type SearchPageJson = Json<typeof searchPageShape>
