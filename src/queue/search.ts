/**
 * Looking for the mail an order is about: by name only, page by page. In a large queue that takes a while; the daemon
 * has it done by a thread, so that mail flows meanwhile.
 */
import type { Message } from './message.ts'
import type { ListedMessage, ListPage, QueueFilter, QueueReader } from './reader.ts'

export type FoundMessage = Pick<Message, 'id' | 'createdAt'> & Pick<ListedMessage, 'queue'>

export interface Search {
  /** One page of messages, in the order they arrived. */
  find(filter: QueueFilter, page: ListPage): Promise<readonly FoundMessage[]>
  end(): Promise<void>
}

export const foundBy = (reader: QueueReader, filter: QueueFilter, page: ListPage): readonly FoundMessage[] =>
  reader.list(filter, page).map(({ message: { id, createdAt }, queue }) => ({ id, createdAt, queue }))

/** Where nothing else goes on. */
export const searchHere = (reader: QueueReader): Search => ({
  find: (filter, page) => Promise.resolve(foundBy(reader, filter, page)),
  end: () => Promise.resolve(),
})
