/** Reads the queue page by page. At most three pages are in memory: the next ones are read while the caller handles one. */
import type { MessageId } from '../mail/message.ts'
import type { ListedMessage, QueueReader } from '../store/queue-reader.ts'
import { conditionsIn, type QueueFilter } from '../store/message-conditions.ts'

/** Number of messages per page. Reading a page takes a transaction of about 3 ms. */
const PAGE = 1_000

interface ListOrder {
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

export async function* pages(reader: QueueReader, order: ListOrder): AsyncGenerator<readonly ListedMessage[]> {
  const isWhole = order.through === undefined && (order.limit ?? Infinity) === Infinity && conditionsIn(order.filter).length === 0
  const read = isWhole ? rangesOf(reader, order) : pagesInTurn(reader, order)
  for await (const page of read) if (page.length > 0) yield page
}

/** Pages of which each begins behind the one before, so that it is requested when that one has arrived. */
async function* pagesInTurn(
  reader: QueueReader,
  { filter, limit = Infinity, after: from = 0, through, size: most = PAGE }: ListOrder,
): AsyncGenerator<readonly ListedMessage[]> {
  let left = limit
  const read = (after: MessageId, size: number) => begun(reader.list(filter, { after, through, limit: size }))
  let size = Math.min(most, left)
  for (let reading = left > 0 ? read(from, size) : null; reading !== null;) {
    const page = await reading
    left -= page.length
    const isLast = page.length < size || left <= 0
    size = Math.min(most, left)
    reading = isLast ? null : read(page.at(-1)?.message.id ?? from, size)
    yield page
  }
}

/**
 * Pages of all mail by ranges of ids, which are found without the messages: a page is requested before the one before it has arrived, so that
 * a database reads the one while the client decodes the other.
 */
async function* rangesOf(
  reader: QueueReader,
  { filter, after: from = 0, size = PAGE }: ListOrder,
): AsyncGenerator<readonly ListedMessage[]> {
  const list = async (after: MessageId, through: MessageId): Promise<readonly ListedMessage[]> => {
    const page = await reader.list(filter, { after, through, limit: size + 1 })
    // More than `size`: messages with lower ids, of other nodes, have arrived since the range was found.
    return page.length <= size ? page : [...page, ...(await list(page.at(-1)?.message.id ?? through, through))]
  }
  let last = from
  const next = async (): Promise<{ readonly page: Promise<readonly ListedMessage[]> } | null> => {
    const through = await reader.sliceEnd(last, size)
    if (through === null) return null
    const page = begun(list(last, through))
    last = through
    return { page }
  }
  for (let reading = await next(); reading !== null;) {
    const following = begun(next())
    yield await reading.page
    reading = await following
  }
}

/** A caller that stops does not ask for the result. */
function begun<T>(result: Promise<T>): Promise<T> {
  result.catch(() => undefined)
  return result
}
