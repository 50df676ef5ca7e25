/** The part of a queue's state that an acknowledgement promises: messages with their places, recipients and schedules. */
import type { MessageId } from '../../../src/mail/message.ts'
import type { ListedMessage, ListPage } from '../../../src/store/queue-reader.ts'
import { ANY_MESSAGE, type QueueFilter } from '../../../src/store/message-conditions.ts'

/** Id, bytes, whether it is on hold, and its live recipients: address, due time, steps. */
export type MessageState = readonly [MessageId, number, boolean, readonly (readonly [string, number, number])[]]

export const stateOf = (reader: { list(filter: QueueFilter, page: ListPage): readonly ListedMessage[] }): readonly MessageState[] =>
  reader
    .list(ANY_MESSAGE, { after: 0, limit: 10_000 })
    .map(({ message, queue, recipients }): MessageState => [
      message.id,
      message.size,
      queue === 'hold',
      recipients.map(({ address, dueAt, steps }) => [address, dueAt, steps] as const),
    ])
