/**
 * A table of numbers by number, with open addressing: 16 bytes an entry, and at most a third as much unused. Keys are whole numbers from 1 to
 * 2^53. Without values it is a set, of half the size.
 */

const FIRST_CAPACITY = 16
/** Part of the places that may be used, and growth of a table in which all of these are. */
const MOST_USED = 0.85
const GROWTH = 1.125
/** Places without an entry: never used, or left. */
const EMPTY = 0
const LEFT = -1

/** A whole number from 1 to 2^53 for a text: different ones for 100,000 texts with a probability of 0.999999. */
export function numberOf(text: string): number {
  let [a, b] = [0xde_ad_be_ef, 0x41_c6_ce_57]
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    a = Math.imul(a ^ unit, 2_654_435_761)
    b = Math.imul(b ^ unit, 1_597_334_677)
  }
  a = Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909)
  b = Math.imul(b ^ (b >>> 16), 2_246_822_507) ^ Math.imul(a ^ (a >>> 13), 3_266_489_909)
  return 4_294_967_296 * (2_097_151 & b) + (a >>> 0) + 1
}

/** A part of 1 for a number, evenly distributed. */
function partOf(key: number): number {
  let hash = Math.imul(key | 0, 0x9e_37_79_b1) ^ Math.imul((key / 4_294_967_296) | 0, 0x85_eb_ca_6b)
  hash = Math.imul(hash ^ (hash >>> 15), 0xc2_b2_ae_35)
  return ((hash ^ (hash >>> 13)) >>> 0) / 4_294_967_296
}

export class NumberTable {
  #keys = new Float64Array(FIRST_CAPACITY)
  #values: Float64Array
  readonly #hasValues: boolean
  #size = 0
  /** Number of places that have or had an entry. */
  #used = 0

  constructor({ hasValues }: { readonly hasValues: boolean }) {
    this.#hasValues = hasValues
    this.#values = new Float64Array(hasValues ? FIRST_CAPACITY : 0)
  }

  get size(): number {
    return this.#size
  }

  /** Size of the tables. */
  get bytes(): number {
    return this.#keys.byteLength + this.#values.byteLength
  }

  has(key: number): boolean {
    return this.#keys[this.#find(key)] === key
  }

  get(key: number): number | undefined {
    const at = this.#find(key)
    return this.#keys[at] === key ? this.#values[at] : undefined
  }

  set(key: number, value = 0): void {
    let at = this.#find(key)
    if (this.#keys[at] !== key) {
      if (this.isFull) {
        this.keep(() => true)
        at = this.#find(key)
      }
      this.#keys[at] = key
      this.#size++
      this.#used++
    }
    if (this.#hasValues) this.#values[at] = value
  }

  delete(key: number): void {
    const at = this.#find(key)
    if (this.#keys[at] !== key) return
    this.#keys[at] = LEFT
    this.#size--
  }

  /** True when the next new key makes the table grow. */
  get isFull(): boolean {
    return this.#used + 1 > MOST_USED * this.#keys.length
  }

  /** Deletes the entries whose values are not wanted, and makes room for some more. */
  keep(isWanted: (value: number) => boolean): void {
    const [keys, values] = [this.#keys, this.#values]
    const isKept = (at: number): boolean => (keys[at] ?? EMPTY) > EMPTY && isWanted(values[at] ?? 0)
    let kept = 0
    for (let at = 0; at < keys.length; at++) kept += Number(isKept(at))
    const capacity = Math.max(FIRST_CAPACITY, Math.ceil((kept * GROWTH) / MOST_USED))
    this.#keys = new Float64Array(capacity)
    this.#values = new Float64Array(this.#hasValues ? capacity : 0)
    this.#size = this.#used = kept
    for (let at = 0; at < keys.length; at++) {
      if (!isKept(at)) continue
      const to = this.#find(keys[at] ?? EMPTY)
      this.#keys[to] = keys[at] ?? EMPTY
      if (this.#hasValues) this.#values[to] = values[at] ?? 0
    }
  }

  /** The place of a key, or the one that was never used where it would be. */
  #find(key: number): number {
    const capacity = this.#keys.length
    let at = Math.floor(partOf(key) * capacity)
    while (this.#keys[at] !== EMPTY && this.#keys[at] !== key) at = at + 1 === capacity ? 0 : at + 1
    return at
  }
}
