/** Reads that each engine makes in its own way, beside the statements that differ in their spelling only. */
import type { DestinationName, MessageId, Placement } from '../../mail/message.ts'
import type { ListedMessage, ListedRecipient, MessageDetails } from '../queue-reader.ts'
import type { QueueFilter } from '../message-conditions.ts'
import { queueNameOf } from '../decisions/queue-name.ts'
import type { ListedForm, Selection } from './message-selection.ts'
import type { Read } from './read.ts'
import type { PlaceOf, Spelling } from './spelling.ts'

export interface ReadingEngine {
  readonly spelling: Spelling
  /** Finds the recipients at a destination. */
  readonly place: (destination: DestinationName) => Read<PlaceOf>
  /** The first messages of a selection that match a filter. A filter that names a queue may get messages of other queues too. */
  readonly page: (filter: QueueFilter, ids: Selection, form: ListedForm) => Read<MessagePage>
  /** A message in the queue or in the trash. */
  readonly details: (message: MessageId) => Read<MessageDetails | undefined>
}

export interface MessagePage {
  /** Number of messages that matched, with those that have no live recipient. */
  readonly matched: number
  /** The last one of them. */
  readonly last: MessageId | undefined
  readonly listed: readonly ListedMessage[]
}

/** The queue of a message with these live recipients. */
export function queueOf(
  message: { readonly placement: Placement; readonly scheduled: boolean },
  live: readonly ListedRecipient[],
  closed: ReadonlySet<DestinationName>,
): ListedMessage['queue'] {
  return queueNameOf({
    ...message,
    isActive: live.some(({ state }) => state === 'leased'),
    isDeferred: live.some(({ attempts, destination }) => attempts > 0 || closed.has(destination)),
  })
}
