/**
 * Threads that make a listing together: each is asked for the next slice of the queue while the others are at theirs,
 * and a few slices ahead of what is printed, so that memory does not grow with the queue.
 */
import { availableParallelism } from 'node:os'
import type { MessageId } from '../queue/message.ts'
import type { QueueReader } from '../queue/reader.ts'
import { AskedThread, threadFile } from '../system/asked-thread.ts'
import type { IdRange, ListingOrder, Share } from './listing.ts'
import type { ListingPlace } from './listing-thread.ts'

/** Messages that a thread is asked for at once: some milliseconds of work, two megabytes of text. */
const SLICE = 4_000
const MOST_THREADS = 4
/** Young values of a thread, in MB: lines are made and forgotten, more only makes the process larger. */
const NURSERY = 32

export async function* listingInThreads(reader: QueueReader, directory: string, order: ListingOrder): AsyncGenerator<Share> {
  const place: ListingPlace = { directory, order, over: new Int32Array(new SharedArrayBuffer(4)) }
  const threads = Array.from({ length: Math.min(MOST_THREADS, availableParallelism()) }, () => listingThread(place))
  try {
    const asked: Promise<readonly Share[]>[] = []
    let turn = 0
    for (const range of slices(reader)) {
      const thread = threads[turn++ % threads.length]
      if (thread !== undefined) asked.push(thread.ask(range))
      if (asked.length > 2 * threads.length) yield* freed((await asked.shift()) ?? [])
    }
    for (const shares of asked) yield* freed(await shares)
  } finally {
    // Whatever they were asked before: nobody wants to know any more.
    Atomics.store(place.over, 0, 1)
    await Promise.all(threads.map((thread) => thread.end()))
  }
}

const listingThread = (workerData: ListingPlace): AskedThread<IdRange, readonly Share[]> =>
  new AskedThread(threadFile(import.meta.url, 'listing-thread'), { workerData, resourceLimits: { maxYoungGenerationSizeMb: NURSERY } })

/** What was printed gives its memory back at once: the collector would wait until much more had piled up. */
function* freed(shares: readonly Share[]): Generator<Share> {
  for (const share of shares) {
    yield share
    ;(share.lines.buffer as ArrayBuffer).transfer(0)
  }
}

function* slices(reader: QueueReader): Generator<IdRange> {
  let after: MessageId = 0
  for (let through = reader.sliceEnd(after, SLICE); through !== null; through = reader.sliceEnd(after, SLICE)) {
    yield { after, through }
    after = through
  }
}
