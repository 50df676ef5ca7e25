/** Contents of a queue in memory that several messages may have. */
import type { ContentId } from '../../mail/message.ts'
import { KEPT_CONTENT_ROWS } from '../records/kept-content.ts'
import type { MemoryQueue } from './queue-state.ts'

/** True when a message or a kept content has the content. */
export const hasContent = ({ messages, moving, records }: MemoryQueue, content: ContentId): boolean =>
  [...messages.values(), ...[...moving.values()].map(({ moved }) => moved)].some(({ message }) => message.contentId === content) ||
  [...KEPT_CONTENT_ROWS.heldIn(records).values()].some(({ contentId }) => contentId === content)
