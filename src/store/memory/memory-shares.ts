/** Counts of the live mail of each share of a queue in memory. Each call counts the whole queue, because such queues are small. */
import { countsAs, NO_SHARE, type ShareChanges, type ShareCount, type ShareCounting } from '../share-counts.ts'
import type { MemoryQueue } from './queue-state.ts'

export class MemoryShares implements ShareCounting {
  readonly #queue: MemoryQueue
  #listener: ((changes: ShareChanges) => void) | null = null

  constructor(queue: MemoryQueue) {
    this.#queue = queue
  }

  async countShares(counts: boolean): Promise<boolean> {
    this.#queue.countsShares = counts
    this.tell()
    return true
  }

  /** Each owner has the counts of the whole queue. */
  async sharesElsewhere(): Promise<readonly ShareCount[]> {
    return []
  }

  onShares(listener: (changes: ShareChanges) => void): void {
    this.#listener = listener
    this.tell()
  }

  tell(): void {
    this.#listener?.({ all: true, counts: this.#queue.countsShares ? sharesOf(this.#queue) : [] })
  }
}

function sharesOf(queue: MemoryQueue): readonly ShareCount[] {
  const live = [...queue.messages.values()].filter(({ placement }) => countsAs(placement)).map(({ message }) => message)
  return Array.from(
    Map.groupBy(live, ({ share = NO_SHARE }) => share),
    ([share, those]) => ({ share, messages: those.length, bytes: those.reduce((sum, { size }) => sum + size, 0) }),
  )
}
