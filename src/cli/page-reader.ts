/**
 * Walks through the queue page by page: at most a page is held, and between pages others get their turn.
 */
import type { Instant } from '../mail/clock.ts'
import type { MessageId } from '../queue/message.ts'
import type { ListedMessage, QueueFilter, QueueReader } from '../queue/reader.ts'

/** Messages per page: large enough to be fast, small enough to keep no reader's transaction open for long (3 ms). */
const PAGE = 1_000

export interface ListOrder {
  readonly filter: QueueFilter
  readonly now: Instant
  /** Only messages with ids after this one… */
  readonly after?: MessageId | undefined
  /** …and up to this one. */
  readonly through?: MessageId | undefined
  /** The most messages to list; all when absent. */
  readonly limit?: number | undefined
}

export function* pages(
  reader: QueueReader,
  { filter, now, limit = Infinity, after: from = 0, through }: ListOrder,
): Generator<readonly ListedMessage[]> {
  let after = from
  for (let left = limit; left > 0;) {
    const size = Math.min(PAGE, left)
    const page = reader.list(filter, { after, through, limit: size, now })
    if (page.length > 0) yield page
    if (page.length < size) return
    left -= page.length
    after = page.at(-1)?.message.id ?? after
  }
}
