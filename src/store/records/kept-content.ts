/** Contents of messages that have left the queue. The store keeps and deletes them with the mail (store/returned-mail). */
import type { ContentId, MessageId } from '../../mail/message.ts'
import type { QueueTime } from '../../system/clock.ts'
import { RecordTable } from './record-table.ts'

export interface KeptContent {
  readonly message: MessageId
  readonly contentId: ContentId
  readonly until: QueueTime
  /** Bytes of the content. */
  readonly size: number
  /** Header fields that were sent before the content. */
  readonly headers: string | null
}

export const KEPT_CONTENT_ROWS = new RecordTable<KeptContent, 'message'>(
  'kept_content',
  { message: 'number', contentId: 'number', until: 'number', size: 'number', headers: 'text' },
  { key: ['message'] },
)

export const KEPT_CONTENTS = {
  /** The content of a message; undefined when it is not kept. */
  of: KEPT_CONTENT_ROWS.read<[message: MessageId], KeptContent | undefined>({
    statements: (message) => [
      {
        text: `select message, content_id as "contentId", "until", size, headers from kept_content where message = :message`,
        values: { message },
      },
    ],
    answer: ([row]) => (row === undefined ? undefined : KEPT_CONTENT_ROWS.decode(row)),
    held: (all, message) => KEPT_CONTENT_ROWS.heldIn(all).get(String(message)),
  }),
}
