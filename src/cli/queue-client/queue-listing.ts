/**
 * Lists the queue as text, page by page of messages; the text of a page is a ListingPart. A long listing is formatted by several worker
 * threads, each with its own connection to the database, because formatting takes most of the time.
 */
import type { QueueReader } from '../../store/queue-reader.ts'
import type { OpenedReader } from '../shell/shell.ts'
import { exactDestination, type QueueFilter } from '../../store/message-conditions.ts'
import { partsOf, type ListingOrder, type ListingPart } from './listing-parts.ts'

/** Up to this number of messages, one thread is faster than several. */
const ONE_THREAD_LIMIT = 100_000
/** In recipients at one destination. One thread uses the index of the destination, while several workers read the whole queue. */
const ONE_THREAD_LIMIT_AT_DESTINATION = 20_000

/** Queues with little mail, in which most slices would be empty. */
const RARE: ReadonlySet<QueueFilter['queue']> = new Set(['active', 'hold', 'corrupt', 'trash'])

/**
 * Yields parts in the order of the messages. `directory` is the queue folder that `opened` reads; null for a queue in PostgreSQL, which
 * one thread reads.
 */
export async function* listing(opened: OpenedReader, directory: string | null, order: ListingOrder): AsyncGenerator<ListingPart> {
  if (directory === null || order.limit !== undefined || RARE.has(order.filter.queue) || (await isShort(opened.reader, order.filter)))
    return yield* partsOf(opened, order)
  const { listingInThreads } = await import('./parallel-listing.ts')
  yield* listingInThreads(opened, directory, order)
}

async function isShort(reader: QueueReader, filter: QueueFilter): Promise<boolean> {
  const destination = exactDestination(filter)
  if (destination !== null) {
    const { waiting, leased } = await reader.destinationLoad(destination)
    if (waiting + leased < ONE_THREAD_LIMIT_AT_DESTINATION) return true
  }
  const end = await reader.sliceEnd(0, ONE_THREAD_LIMIT)
  return end === null || (await reader.sliceEnd(end, 1)) === null
}
