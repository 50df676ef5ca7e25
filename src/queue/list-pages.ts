/** Reads the queue page by page. At most two pages are in memory: the next one is read while the caller handles one. */
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
  let left = limit
  const read = (after: MessageId, size: number): Promise<readonly ListedMessage[]> => {
    const page = reader.list(filter, { after, through, limit: size })
    // A caller that stops does not ask for the page.
    page.catch(() => undefined)
    return page
  }
  let size = Math.min(most, left)
  for (let reading = left > 0 ? read(from, size) : null; reading !== null;) {
    const page = await reading
    left -= page.length
    const isLast = page.length < size || left <= 0
    size = Math.min(most, left)
    reading = isLast ? null : read(page.at(-1)?.message.id ?? from, size)
    if (page.length > 0) yield page
  }
}
