/** Worker thread of a long listing: formats slices of the queue on request. */
import { workerData } from 'node:worker_threads'
import { openQueueReader } from '../../store/sqlite/reading/sqlite-reader.ts'
import { clockOf } from '../../system/queue-clock.ts'
import { systemClock } from '../../system/system-clock.ts'
import { answering } from '../../system/worker-rpc.ts'
import { partsOf, type IdRange, type ListingOrder, type ListingPart } from './listing-parts.ts'

export interface ListingPlace {
  readonly directory: string
  readonly order: ListingOrder
  /** Non-zero when the listing was cancelled. */
  readonly over: Int32Array
}

const { directory, order, over } = workerData as ListingPlace
const reader = openQueueReader(directory)
const opened = reader.clockRecord().then((record) => ({ reader, clock: clockOf(record, systemClock) }))

answering(
  async (range: IdRange) => {
    const parts: ListingPart[] = []
    if (Atomics.load(over, 0) === 0) for await (const part of partsOf(await opened, order, range)) parts.push(part)
    return { answer: parts, transfer: parts.map(({ lines }) => lines.buffer as ArrayBuffer) }
  },
  () => reader.close(),
)
