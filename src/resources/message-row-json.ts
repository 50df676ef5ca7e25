/** A message, or an entry of the maildrop, as a row of a listing: the columns of `deferd queue list`. */
import { z } from 'zod'
import { shownSender } from '../mail/envelope.ts'
import { QUEUE_NAMES, queueIdOf } from '../mail/message.ts'
import { delayReason, nextAttemptAt, shortReason, type DestinationRecords } from '../presentation/recipient-status.ts'
import { submissionSender, type Submission } from '../queue/intake/maildrop-listing.ts'
import type { ListedMessage } from '../store/queue-reader.ts'
import type { QueueTime } from '../system/clock.ts'
import type { WallView } from '../system/wall-view.ts'
import { count, textOrNull, time, timeOrNull, type Json } from './members.ts'

export const messageRowShape = z
  .object({
    queue_id: z.string(),
    queue_name: z.enum(['maildrop', ...QUEUE_NAMES, 'trash']),
    forced_expire: z.boolean(),
    message_size: count,
    received_time: time,
    attempts: count.describe('most attempts of a recipient'),
    next_attempt_time: timeOrNull.describe('null when there is no next attempt'),
    sender: z.string(),
    recipients: z.array(z.string()),
    reason: textOrNull.describe('of the first recipient with one'),
    short_reason: textOrNull.describe('the reason from the reply code on'),
    class: z.string().optional().describe('class of the message, with [class.NAME] tables'),
  })
  .meta({ id: 'MessageRow' })

export type MessageRowJson = Json<typeof messageRowShape>

export function messageRowJson(listed: ListedMessage, records: DestinationRecords, wall: WallView): MessageRowJson {
  const { message, queue, recipients, forcedExpire } = listed
  let attempts = 0
  let next: QueueTime | null = null
  let reason: string | null = null
  let short: string | null = null
  for (const recipient of recipients) {
    attempts = Math.max(attempts, recipient.attempts)
    const at = nextAttemptAt(recipient, queue, records)
    if (at !== null && (next === null || at < next)) next = at
    if (reason !== null) continue
    reason = delayReason(recipient, listed, records)
    short = shortReason(recipient, listed, records)
  }
  return {
    queue_id: queueIdOf(message),
    queue_name: queue,
    forced_expire: forcedExpire,
    message_size: message.size,
    received_time: wall.seconds(message.arrivedAt),
    attempts,
    next_attempt_time: wall.secondsOrNull(next),
    sender: shownSender(message.sender),
    recipients: recipients.map(({ address }) => address),
    reason,
    short_reason: short,
    ...(message.class === undefined ? {} : { class: message.class }),
  }
}

export const submissionRowJson = (submission: Submission, wall: WallView): MessageRowJson => ({
  queue_id: submission.name,
  queue_name: 'maildrop',
  forced_expire: false,
  message_size: submission.size,
  received_time: wall.seconds(submission.arrivedAt),
  attempts: 0,
  next_attempt_time: null,
  sender: submissionSender(submission),
  recipients: [...submission.recipients],
  reason: submission.reason,
  short_reason: submission.reason,
})
