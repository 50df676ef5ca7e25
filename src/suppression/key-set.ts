/**
 * A set of hashes of 64 bits: 10 to 15 bytes for each key. It may have a key that was not added, once in 10^13 questions to a million keys, so
 * that a reader of it looks at the key itself.
 */

/** Tables of a set, of which one grows at a time: this is short, and little is in memory twice. A power of two. */
const TABLES = 256
const LEAST_SLOTS = 16
/** Part of a table above which it grows, and the factor by which it does. */
const LOAD = 0.8
const GROWTH = 1.5

export class KeySet {
  readonly #tables = Array.from({ length: TABLES }, () => new HashTable())
  /** The hash of the last key, so that a question makes no object. */
  #high = 0
  #low = 0

  get size(): number {
    return this.#tables.reduce((sum, { size }) => sum + size, 0)
  }

  /** Size of the tables. */
  get bytes(): number {
    return this.#tables.reduce((sum, { bytes }) => sum + bytes, 0)
  }

  add(key: string): void {
    this.#tableOf(key).add(this.#high, this.#low)
  }

  has(key: string): boolean {
    return this.#tableOf(key).has(this.#high, this.#low)
  }

  delete(key: string): void {
    this.#tableOf(key).delete(this.#high, this.#low)
  }

  #tableOf(key: string): HashTable {
    this.#hash(key)
    // No index lies outside.
    return this.#tables[this.#high & (TABLES - 1)] as HashTable
  }

  /** Two multiplicative hashes, mixed as in cyrb53. */
  #hash(key: string): void {
    let high = 0xdeadbeef
    let low = 0x41c6ce57
    for (let n = 0; n < key.length; n++) {
      const unit = key.charCodeAt(n)
      high = Math.imul(high ^ unit, 2_654_435_761)
      low = Math.imul(low ^ unit, 1_597_334_677)
    }
    high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909)
    low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909)
    this.#high = high >>> 0
    this.#low = low >>> 0 || 1
  }
}

/** An open table of hashes. The low word of none is 0. */
class HashTable {
  size = 0
  /** The high and the low word of each slot; both are 0 in an empty one. */
  #words = new Uint32Array(2 * LEAST_SLOTS)

  get bytes(): number {
    return this.#words.byteLength
  }

  add(high: number, low: number): void {
    if (this.size + 1 > LOAD * this.#slots) this.#grow()
    const slot = this.#find(high, low)
    if (this.#low(slot) !== 0) return
    this.#words[2 * slot] = high
    this.#words[2 * slot + 1] = low
    this.size++
  }

  has(high: number, low: number): boolean {
    return this.#low(this.#find(high, low)) !== 0
  }

  delete(high: number, low: number): void {
    let empty = this.#find(high, low)
    if (this.#low(empty) === 0) return
    this.size--
    // Later hashes move into the gap unless they would be before their first slot.
    for (let slot = this.#next(empty); this.#low(slot) !== 0; slot = this.#next(slot)) {
      const first = this.#low(slot) % this.#slots
      if (this.#distance(first, slot) < this.#distance(empty, slot)) continue
      this.#words.copyWithin(2 * empty, 2 * slot, 2 * slot + 2)
      empty = slot
    }
    this.#words.fill(0, 2 * empty, 2 * empty + 2)
  }

  get #slots(): number {
    return this.#words.length / 2
  }

  #low(slot: number): number {
    return this.#words[2 * slot + 1] ?? 0
  }

  #next(slot: number): number {
    return slot + 1 === this.#slots ? 0 : slot + 1
  }

  /** Slots from one to a later one, beyond the end of the table from its begin on. */
  #distance(from: number, to: number): number {
    return to < from ? to - from + this.#slots : to - from
  }

  /** The slot of a hash, or the empty one in which it would be. */
  #find(high: number, low: number): number {
    let slot = low % this.#slots
    while (this.#low(slot) !== 0 && (this.#words[2 * slot + 1] !== low || this.#words[2 * slot] !== high)) slot = this.#next(slot)
    return slot
  }

  #grow(): void {
    const former = this.#words
    this.#words = new Uint32Array(2 * Math.ceil(GROWTH * this.#slots))
    this.size = 0
    for (let word = 0; word < former.length; word += 2) {
      const [high = 0, low = 0] = [former[word], former[word + 1]]
      if (low !== 0) this.add(high, low)
    }
    // Frees the memory at once, not at some later collection.
    former.buffer.transfer(0)
  }
}
