/**
 * The timers of a virtual clock, earliest first. Timers of equal time are in the order in which they were set. The order is
 * total, so that equal runs of a world are identical.
 */

export interface SetTimer {
  /** Time on the clock that owns the heap. */
  readonly at: number
  /** Serial number of the timer on its clock. */
  readonly seq: number
  readonly action: () => void
  cancelled: boolean
}

/** Minimum size of the heap at which cancelled timers are removed. */
const SWEEP_FROM = 64

export const runsBefore = (a: { at: number; seq: number }, b: { at: number; seq: number }): boolean =>
  a.at < b.at || (a.at === b.at && a.seq < b.seq)

export class TimerHeap {
  #heap: SetTimer[] = []
  #cancelled = 0

  /** Number of pending timers. */
  get size(): number {
    return this.#heap.length - this.#cancelled
  }

  add(timer: SetTimer): void {
    this.#heap.push(timer)
    this.#rise(this.#heap.length - 1)
  }

  cancel(timer: SetTimer): void {
    if (timer.cancelled) return
    timer.cancelled = true
    this.#cancelled++
    // Most deadlines are cancelled before they are reached. Without removal, they would accumulate.
    if (this.#heap.length >= SWEEP_FROM && this.#cancelled * 2 > this.#heap.length) this.#sweep()
  }

  /** The next timer; undefined when none is pending. */
  peek(): SetTimer | undefined {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (!first.cancelled) return first
      this.#removeFirst()
      this.#cancelled--
    }
    return undefined
  }

  /** Removes and returns the next timer; undefined when none is pending. Cancelling it later has no effect. */
  take(): SetTimer | undefined {
    const first = this.peek()
    if (first === undefined) return undefined
    this.#removeFirst()
    first.cancelled = true
    return first
  }

  #removeFirst(): void {
    const last = this.#heap.pop()
    if (last === undefined || this.#heap.length === 0) return
    this.#heap[0] = last
    this.#sink(0)
  }

  #sweep(): void {
    // A sorted array is a valid heap, and the total order keeps the sequence unchanged.
    this.#heap = this.#heap.filter((timer) => !timer.cancelled).toSorted((a, b) => (runsBefore(a, b) ? -1 : 1))
    this.#cancelled = 0
  }

  #rise(from: number): void {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#swapIfBefore(at, parent)) return
      at = parent
    }
  }

  #sink(from: number): void {
    let at = from
    for (;;) {
      const left = 2 * at + 1
      const right = left + 1
      const child = this.#isBefore(right, left) ? right : left
      if (!this.#swapIfBefore(child, at)) return
      at = child
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [first, second] = [this.#heap[a], this.#heap[b]]
    return first !== undefined && second !== undefined && runsBefore(first, second)
  }

  #swapIfBefore(lower: number, upper: number): boolean {
    const [first, second] = [this.#heap[lower], this.#heap[upper]]
    if (first === undefined || second === undefined || !runsBefore(first, second)) return false
    this.#heap[upper] = first
    this.#heap[lower] = second
    return true
  }
}
