/** A heap of numbers by tag, the smallest tag first and the smallest number of equal tags. Takes 16 bytes an entry, and at most an eighth as much unused. */

const FIRST_CAPACITY = 16

export class TagHeap {
  #tags = new Float64Array(FIRST_CAPACITY)
  #numbers = new Float64Array(FIRST_CAPACITY)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Size of the tables. */
  get bytes(): number {
    return this.#tags.byteLength + this.#numbers.byteLength
  }

  /** The smallest tag; Infinity when the heap is empty. */
  get tag(): number {
    return this.#size === 0 ? Infinity : (this.#tags[0] ?? 0)
  }

  /** The number with the smallest tag; undefined when the heap is empty. */
  get first(): number | undefined {
    return this.#size === 0 ? undefined : this.#numbers[0]
  }

  push(tag: number, number: number): void {
    if (this.#size === this.#tags.length) this.#resize(this.#size + Math.max(FIRST_CAPACITY, this.#size >> 3))
    let at = this.#size++
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#isBefore(tag, number, parent)) break
      this.#copy(parent, at)
      at = parent
    }
    this.#set(at, tag, number)
  }

  /** Removes the number with the smallest tag. */
  pop(): void {
    if (this.#size === 0) return
    const last = --this.#size
    const [tag, number] = [this.#tags[last] ?? 0, this.#numbers[last] ?? 0]
    if (last > 0) this.#sink(tag, number)
    if (this.#tags.length > 4 * FIRST_CAPACITY && this.#size < this.#tags.length >> 1) this.#resize(this.#size + (this.#size >> 3))
  }

  #sink(tag: number, number: number): void {
    let at = 0
    for (let child = 1; child < this.#size; child = 2 * at + 1) {
      const right = child + 1
      const lesser = right < this.#size && this.#isBefore(this.#tags[right] ?? 0, this.#numbers[right] ?? 0, child) ? right : child
      if (this.#isBefore(tag, number, lesser)) break
      this.#copy(lesser, at)
      at = lesser
    }
    this.#set(at, tag, number)
  }

  #isBefore(tag: number, number: number, at: number): boolean {
    const other = this.#tags[at] ?? 0
    return tag < other || (tag === other && number < (this.#numbers[at] ?? 0))
  }

  #copy(from: number, to: number): void {
    this.#set(to, this.#tags[from] ?? 0, this.#numbers[from] ?? 0)
  }

  #set(at: number, tag: number, number: number): void {
    this.#tags[at] = tag
    this.#numbers[at] = number
  }

  #resize(capacity: number): void {
    const [tags, numbers] = [new Float64Array(capacity), new Float64Array(capacity)]
    tags.set(this.#tags.subarray(0, this.#size))
    numbers.set(this.#numbers.subarray(0, this.#size))
    this.#tags = tags
    this.#numbers = numbers
  }
}
