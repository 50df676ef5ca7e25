/** Reads the queue page by page. At most one page is in memory. */
import type { MessageId } from '../mail/message.ts'
import type { ListedMessage, QueueFilter, QueueReader } from '../store/queue-reader.ts'

/** Number of messages per page. Reading a page takes a transaction of about 3 ms. */
const PAGE = 1_000

export interface ListOrder {
  readonly filter: QueueFilter
  /** Lower bound of ids, exclusive. */
  readonly after?: MessageId | undefined
  /** Upper bound of ids, inclusive. */
  readonly through?: MessageId | undefined
  /** Maximum number of messages; no limit when absent. */
  readonly limit?: number | undefined
  /** Number of messages per page; PAGE when absent. */
  readonly size?: number | undefined
}

export async function* pages(
  reader: QueueReader,
  { filter, limit = Infinity, after: from = 0, through, size: most = PAGE }: ListOrder,
): AsyncGenerator<readonly ListedMessage[]> {
  let after = from
  for (let left = limit; left > 0;) {
    const size = Math.min(most, left)
    const page = await reader.list(filter, { after, through, limit: size })
    if (page.length > 0) yield page
    if (page.length < size) return
    left -= page.length
    after = page.at(-1)?.message.id ?? after
  }
}
