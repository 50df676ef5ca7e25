/**
 * Threads that make a listing together: each is asked for the next slice of the queue while the others are at theirs,
 * and a few slices ahead of what is printed, so that memory does not grow with the queue.
 */
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { MessageId } from '../queue/message.ts'
import type { QueueReader } from '../queue/reader.ts'
import type { IdRange, ListingOrder, Share } from './listing.ts'
import type { ListingPlace } from './listing-thread.ts'

/** Messages that a thread is asked for at once: some milliseconds of work, two megabytes of text. */
const SLICE = 4_000
const MOST_THREADS = 4
/** Young values of a thread, in MB: lines are made and forgotten, more only makes the process larger. */
const NURSERY = 32

/** The checkout runs the sources, the package the emitted JavaScript: the thread does as this file does. */
const THREAD = new URL(import.meta.url.endsWith('.ts') ? './listing-thread.ts' : './listing-thread.js', import.meta.url)

export async function* listingInThreads(reader: QueueReader, directory: string, order: ListingOrder): AsyncGenerator<Share> {
  const threads = Array.from({ length: Math.min(MOST_THREADS, availableParallelism()) }, () => new ListingThread({ directory, order }))
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
    await Promise.all(threads.map((thread) => thread.end()))
  }
}

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

/** A thread that answers in the order in which it is asked. */
class ListingThread {
  readonly #worker: Worker
  readonly #waiting: PromiseWithResolvers<readonly Share[]>[] = []
  /** Set when nobody wants to know any more. */
  readonly #over = new Int32Array(new SharedArrayBuffer(4))

  constructor(place: Omit<ListingPlace, 'over'>) {
    const workerData: ListingPlace = { ...place, over: this.#over }
    this.#worker = new Worker(THREAD, { workerData, resourceLimits: { maxYoungGenerationSizeMb: NURSERY } })
    this.#worker.on('message', (shares: readonly Share[]) => this.#waiting.shift()?.resolve(shares))
    this.#worker.on('error', (error) => {
      for (const one of this.#waiting.splice(0)) one.reject(error)
    })
  }

  ask(range: IdRange): Promise<readonly Share[]> {
    const answer = Promise.withResolvers<readonly Share[]>()
    // Whoever waits for the first of several answers hears of the failure; the others must not be unhandled.
    answer.promise.catch(() => undefined)
    this.#waiting.push(answer)
    this.#say(range)
    return answer.promise
  }

  /** Asks it to end, whatever it was asked before: a thread must close its connection itself. */
  async end(): Promise<void> {
    if (this.#worker.threadId === -1) return
    Atomics.store(this.#over, 0, 1)
    const ended = once(this.#worker, 'exit')
    this.#say(null)
    await ended
  }

  #say(word: IdRange | null): void {
    this.#worker.postMessage(word, [])
  }
}
