/** Formats a message that has left the queue as JSON. */
import { failureClass } from '../mail/failure-class.ts'
import { hintOf } from '../mail/login-refusal.ts'
import { queueIdOf, type Recipient } from '../mail/message.ts'
import type { MessageDetails } from '../store/queue-reader.ts'
import { shownSender } from './message-json.ts'
import type { WallView } from '../system/wall-view.ts'

/** One object per message, with the recipients that were selected. */
export const historyJson = ({ message, leftAt }: MessageDetails, recipients: readonly Recipient[], wall: WallView) => ({
  queue_id: queueIdOf(message),
  arrival_time: Math.floor(wall.seconds(message.arrivedAt)),
  left_time: wall.seconds(leftAt ?? message.createdAt),
  message_size: message.size,
  sender: shownSender(message.sender),
  message_id: message.messageId ?? null,
  recipients: recipients.map(({ address, destination, state, settledAt, attempts, last }) => ({
    address,
    destination,
    outcome: state,
    time: wall.seconds(settledAt ?? message.createdAt),
    attempts,
    last_status: last?.status ?? null,
    class: last === null || state === 'delivered' ? null : failureClass(last).class,
    hint: state === 'delivered' ? null : hintOf(last),
    reply: last?.reply ?? null,
    reason: last?.reason ?? null,
  })),
})

export type HistoryJson = ReturnType<typeof historyJson>
