/**
 * Tables of the tally (queue-tally.ts): shape and arrival of each message, and number of messages by the second of their arrival.
 */
import type { MessageId } from '../../mail/message.ts'

/** Counts messages by the second of their arrival. */
export class Arrivals {
  readonly #bySecond = new Map<number, number>()
  /** The earliest second; null when it must be computed again. */
  #oldest: number | null = null

  add(second: number): void {
    this.#bySecond.set(second, (this.#bySecond.get(second) ?? 0) + 1)
    if (this.#oldest !== null && second < this.#oldest) this.#oldest = second
  }

  remove(second: number): void {
    const left = (this.#bySecond.get(second) ?? 0) - 1
    if (left > 0) {
      this.#bySecond.set(second, left)
      return
    }
    this.#bySecond.delete(second)
    if (second === this.#oldest) this.#oldest = null
  }

  /** The earliest second; Infinity when there are no messages. */
  get oldest(): number {
    if (this.#oldest === null) {
      this.#oldest = Infinity
      for (const second of this.#bySecond.keys()) if (second < this.#oldest) this.#oldest = second
    }
    return this.#oldest
  }
}

/** Messages per page of the table. */
const PAGE = 1_024

interface Page {
  readonly shapes: Uint32Array
  readonly seconds: Uint32Array
  used: number
}

/**
 * Index of the shape (queue-tally.ts) and second of the arrival of every counted message. Ids are mostly dense, so entries are kept
 * in pages. A page without messages is freed.
 */
export class CountedMessages {
  readonly #pages = new Map<number, Page>()

  set(id: MessageId, shape: number, second: number): void {
    const number = Math.floor(id / PAGE)
    const page = this.#pages.get(number) ?? { shapes: new Uint32Array(PAGE), seconds: new Uint32Array(PAGE), used: 0 }
    this.#pages.set(number, page)
    page.shapes[id % PAGE] = shape
    page.seconds[id % PAGE] = second
    page.used++
  }

  shapeOf(id: MessageId): number {
    return this.#pages.get(Math.floor(id / PAGE))?.shapes[id % PAGE] ?? 0
  }

  /** Removes a message and returns its entry; undefined when the message is not counted. */
  take(id: MessageId): { readonly shape: number; readonly second: number } | undefined {
    const number = Math.floor(id / PAGE)
    const page = this.#pages.get(number)
    const shape = page?.shapes[id % PAGE] ?? 0
    if (page === undefined || shape === 0) return undefined
    page.shapes[id % PAGE] = 0
    if (--page.used === 0) this.#pages.delete(number)
    return { shape, second: page.seconds[id % PAGE] ?? 0 }
  }
}
