/** One thread of a long listing: it answers slices of the queue with their lines. */
import { workerData } from 'node:worker_threads'
import { openQueueReader } from '../queue/sqlite/queue-reader.ts'
import { answering } from '../system/asked-thread.ts'
import { sharesOf, type IdRange, type ListingOrder } from './listing.ts'

export interface ListingPlace {
  readonly directory: string
  readonly order: ListingOrder
  /** Not zero when nobody wants to know any more. */
  readonly over: Int32Array
}

const { directory, order, over } = workerData as ListingPlace
const reader = openQueueReader(directory)

answering(
  (range: IdRange) => {
    const shares = Atomics.load(over, 0) === 0 ? [...sharesOf(reader, order, range)] : []
    return { answer: shares, transfer: shares.map(({ lines }) => lines.buffer as ArrayBuffer) }
  },
  () => reader.close(),
)
