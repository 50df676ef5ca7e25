/**
 * Formats a long listing in several threads, the calling one among them, each of which formats slices of the queue in turn. The workers are
 * at most a few slices ahead of the output, so memory does not grow with the queue.
 */
import { availableParallelism } from 'node:os'
import type { MessageId } from '../../mail/message.ts'
import type { QueueReader } from '../../store/queue-reader.ts'
import { thread } from '../../system/packaged-files.ts'
import { WorkerClient } from '../../system/worker-rpc.ts'
import type { OpenedReader } from '../shell/shell.ts'
import { partsOf, type IdRange, type ListingOrder, type ListingPart } from './listing-parts.ts'
import type { ListingPlace } from './listing-worker.ts'

/** Some milliseconds of work, and two megabytes of text. */
const MESSAGES_PER_SLICE = 4_000
const MOST_THREADS = 4
/** Size of a worker's young generation. Lines are short-lived, so a larger one would only enlarge the process. */
const NURSERY_MB = 32

export async function* listingInThreads(opened: OpenedReader, directory: string, order: ListingOrder): AsyncGenerator<ListingPart> {
  const place: ListingPlace = { directory, order, over: new Int32Array(new SharedArrayBuffer(4)) }
  const workers = Array.from({ length: Math.min(MOST_THREADS, availableParallelism()) - 1 }, () => listingThread(place))
  try {
    const begun: AsyncIterable<ListingPart>[] = []
    let turn = 0
    for await (const range of slices(opened.reader)) {
      const worker = workers[turn++ % (workers.length + 1)]
      // The slice of the calling thread is formatted when it is printed.
      begun.push(worker === undefined ? partsOf(opened, order, range) : partsBy(worker, range))
      if (begun.length > 2 * workers.length) yield* freed(begun.shift())
    }
    for (const parts of begun) yield* freed(parts)
  } finally {
    // Cancels slices that were requested but not read.
    Atomics.store(place.over, 0, 1)
    await Promise.all(workers.map((worker) => worker.end()))
  }
}

const listingThread = (workerData: ListingPlace): WorkerClient<IdRange, readonly ListingPart[]> =>
  new WorkerClient(thread('cli/queue-client/listing-worker', { workerData, resourceLimits: { maxYoungGenerationSizeMb: NURSERY_MB } }))

/** Requests the slice at once, not when the first part is read. */
function partsBy(worker: WorkerClient<IdRange, readonly ListingPart[]>, range: IdRange): AsyncIterable<ListingPart> {
  const asked = worker.ask(range)
  return (async function* () {
    yield* await asked
  })()
}

/** Frees the memory of printed parts. The garbage collector would free it much later. */
async function* freed(parts: AsyncIterable<ListingPart> | undefined): AsyncGenerator<ListingPart> {
  for await (const part of parts ?? []) {
    yield part
    ;(part.lines.buffer as ArrayBuffer).transfer(0)
  }
}

async function* slices(reader: QueueReader): AsyncGenerator<IdRange> {
  let after: MessageId = 0
  for (
    let through = await reader.sliceEnd(after, MESSAGES_PER_SLICE);
    through !== null;
    through = await reader.sliceEnd(after, MESSAGES_PER_SLICE)
  ) {
    yield { after, through }
    after = through
  }
}
