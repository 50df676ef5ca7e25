/** Messages that have left the queue in JSON: one object per message, with the recipients that were selected. */
import { z } from 'zod'
import { shownSender } from '../mail/envelope.ts'
import { isCancelled } from '../queue/cancellation.ts'
import { queueIdOf, type Recipient } from '../mail/message.ts'
import type { MessageDetails } from '../store/queue-reader.ts'
import type { WallView } from '../system/wall-view.ts'
import { count, failure, failureJson, next, textOrNull, time, wholeTime, wholeTimeShape, type Json } from './members.ts'

export const departedMessageShape = z
  .object({
    queue_id: z.string(),
    arrival_time: wholeTimeShape,
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
        ...failure,
        reply: textOrNull,
        reason: textOrNull,
        resent_as: textOrNull.describe('queue id with which it was sent again after it had failed'),
      }),
    ),
  })
  .meta({ id: 'DepartedMessage' })

export type DepartedMessageJson = Json<typeof departedMessageShape>

export const departedMessageJson = (
  { message, leftAt }: MessageDetails,
  recipients: readonly Recipient[],
  wall: WallView,
): DepartedMessageJson => ({
  queue_id: queueIdOf(message),
  arrival_time: wholeTime(message.arrivedAt, wall),
  left_time: wall.seconds(leftAt ?? message.createdAt),
  message_size: message.size,
  sender: shownSender(message.sender),
  message_id: message.messageId ?? null,
  recipients: recipients.map(({ address, destination, state, settledAt, attempts, last, resentAs }) => ({
    address,
    destination,
    outcome: isCancelled({ state, last }) ? 'cancelled' : state,
    time: wall.seconds(settledAt ?? message.createdAt),
    attempts,
    last_status: last?.status ?? null,
    ...failureJson(state === 'delivered' ? null : last),
    reply: last?.reply ?? null,
    reason: last?.reason ?? null,
    resent_as: resentAs ?? null,
  })),
})

export const historyPageShape = z.object({ messages: z.array(departedMessageShape), next, as_of: time }).meta({ id: 'HistoryPage' })

export type HistoryPageJson = Json<typeof historyPageShape>
