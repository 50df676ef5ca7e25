/** One thread of a long listing: it reads the slices it is asked for and answers with their lines. */
import { parentPort, workerData } from 'node:worker_threads'
import { openQueueReader } from '../queue/sqlite/queue-reader.ts'
import { sharesOf, type IdRange, type ListingOrder } from './listing.ts'

export interface ListingPlace {
  readonly directory: string
  readonly order: ListingOrder
  /** Not zero when nobody wants to know any more. */
  readonly over: Int32Array
}

if (parentPort === null) throw new Error('listing-thread runs as a worker thread')
const port = parentPort
const { directory, order, over } = workerData as ListingPlace
const reader = openQueueReader(directory)

port.on('message', (range: IdRange | null) => {
  if (range === null) {
    reader.close()
    port.close()
    return
  }
  const shares = Atomics.load(over, 0) === 0 ? [...sharesOf(reader, order, range)] : []
  port.postMessage(
    shares,
    shares.map(({ lines }) => lines.buffer as ArrayBuffer),
  )
})
