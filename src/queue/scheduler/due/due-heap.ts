/**
 * A heap of destinations by the time of their next action. An entry is found by name and moved in O(log n). Entries with equal
 * times keep the order of their first insertion, so that runs are reproducible.
 */
import type { QueueTime } from '../../../system/clock.ts'
import type { DestinationName } from '../../../mail/message.ts'

interface Entry {
  readonly name: DestinationName
  at: QueueTime
  readonly order: number
  index: number
}

export class DueHeap {
  readonly #heap: Entry[] = []
  readonly #entries = new Map<DestinationName, Entry>()
  #order = 0

  get size(): number {
    return this.#heap.length
  }

  /** Returns the earliest entry without removing it. */
  first(): { readonly name: DestinationName; readonly at: QueueTime } | undefined {
    return this.#heap[0]
  }

  /** Sets the time of a destination; null removes the destination. */
  set(name: DestinationName, at: QueueTime | null): void {
    const entry = this.#entries.get(name)
    if (at === null) {
      if (entry !== undefined) this.#remove(entry)
    } else if (entry === undefined) {
      const added = { name, at, order: this.#order++, index: this.#heap.length }
      this.#entries.set(name, added)
      this.#heap.push(added)
      this.#up(added)
    } else {
      entry.at = at
      this.#up(entry)
      this.#down(entry)
    }
  }

  #remove(entry: Entry): void {
    this.#entries.delete(entry.name)
    const last = this.#heap.pop()
    if (last === undefined || last === entry) return
    this.#place(last, entry.index)
    this.#up(last)
    this.#down(last)
  }

  #place(entry: Entry, index: number): void {
    this.#heap[index] = entry
    entry.index = index
  }

  #up(entry: Entry): void {
    let index = entry.index
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = this.#heap[above]
      if (parent === undefined || !earlier(entry, parent)) break
      this.#place(parent, index)
      index = above
    }
    this.#place(entry, index)
  }

  #down(entry: Entry): void {
    let index = entry.index
    for (;;) {
      const left = this.#heap[2 * index + 1]
      const right = this.#heap[2 * index + 2]
      const child = right !== undefined && left !== undefined && earlier(right, left) ? right : left
      if (child === undefined || !earlier(child, entry)) break
      const below = child.index
      this.#place(child, index)
      index = below
    }
    this.#place(entry, index)
  }
}

const earlier = (a: Entry, b: Entry): boolean => a.at < b.at || (a.at === b.at && a.order < b.order)
