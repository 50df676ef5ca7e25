/**
 * Formats a long listing with several worker threads, each of which formats the next slice of the queue. The workers are at most
 * a few slices ahead of the output, so memory does not grow with the queue.
 */
import { availableParallelism } from 'node:os'
import type { MessageId } from '../../mail/message.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import { WorkerClient, threadFile } from '../../system/worker-rpc.ts'
import type { IdRange, ListingOrder, Share } from './listing-shares.ts'
import type { ListingPlace } from './listing-worker.ts'

/** Number of messages per slice: some milliseconds of work, and two megabytes of text. */
const SLICE = 4_000
const MOST_THREADS = 4
/** Size of a worker's young generation in MB. Lines are short-lived, so a larger one would only enlarge the process. */
const NURSERY = 32

export async function* listingInThreads(reader: QueueReader, directory: string, order: ListingOrder): AsyncGenerator<Share> {
  const place: ListingPlace = { directory, order, over: new Int32Array(new SharedArrayBuffer(4)) }
  const threads = Array.from({ length: Math.min(MOST_THREADS, availableParallelism()) }, () => listingThread(place))
  try {
    const asked: Promise<readonly Share[]>[] = []
    let turn = 0
    for await (const range of slices(reader)) {
      const thread = threads[turn++ % threads.length]
      if (thread !== undefined) asked.push(thread.ask(range))
      if (asked.length > 2 * threads.length) yield* freed((await asked.shift()) ?? [])
    }
    for (const shares of asked) yield* freed(await shares)
  } finally {
    // Cancels slices that were requested but not read.
    Atomics.store(place.over, 0, 1)
    await Promise.all(threads.map((thread) => thread.end()))
  }
}

const listingThread = (workerData: ListingPlace): WorkerClient<IdRange, readonly Share[]> =>
  new WorkerClient(threadFile(import.meta.url, 'listing-worker'), { workerData, resourceLimits: { maxYoungGenerationSizeMb: NURSERY } })

/** Frees the memory of printed shares. The garbage collector would free it much later. */
function* freed(shares: readonly Share[]): Generator<Share> {
  for (const share of shares) {
    yield share
    ;(share.lines.buffer as ArrayBuffer).transfer(0)
  }
}

async function* slices(reader: QueueReader): AsyncGenerator<IdRange> {
  let after: MessageId = 0
  for (let through = await reader.sliceEnd(after, SLICE); through !== null; through = await reader.sliceEnd(after, SLICE)) {
    yield { after, through }
    after = through
  }
}
