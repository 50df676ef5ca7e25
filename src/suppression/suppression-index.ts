/**
 * Keys of all entries in memory, so that a recipient without one costs no read. It follows the store by `seq`; until it has read everything, each
 * key may have an entry. Keys of deleted entries stay until a recipient has one, or all are read anew.
 */
import type { Records } from '../store/records/records.ts'
import { FIRST_KEY, type SuppressionChange, type SuppressionKey } from '../store/records/suppression-entry.ts'
import { KeySet } from './key-set.ts'

/** Changes that one read returns. */
const PAGE = 5_000

const textOf = ({ scope, address }: SuppressionKey): string => `${scope} ${address}`

interface Known {
  readonly keys: KeySet
  /** Position in the changes. */
  last: SuppressionChange
}

const nothing = (): Known => ({ keys: new KeySet(), last: { seq: 0, ...FIRST_KEY } })

export class SuppressionIndex {
  readonly #changes: Records['suppressions']['changes']
  #known = nothing()
  #isLoaded = false
  /** The reading that goes on. */
  #reading: Promise<void> | null = null
  /** True when changes were made after the begin of the reading. */
  #isOutdated = false
  /** True when the next reading begins with the first change. */
  #isRenewed = false

  constructor(changes: Records['suppressions']['changes']) {
    this.#changes = changes
  }

  /** True when an entry may have the key. */
  mayHave(key: SuppressionKey): boolean {
    return !this.#isLoaded || this.#known.keys.has(textOf(key))
  }

  /** Position in the changes. */
  get last(): SuppressionChange {
    return this.#known.last
  }

  /** Reads the changes. Resolves when those that were made before the call are known. Rejects with StoreUnavailable. */
  async follow(): Promise<void> {
    this.#isOutdated = true
    this.#reading ??= this.#read().finally(() => (this.#reading = null))
    await this.#reading
  }

  /** Reads all keys anew, without those of deleted entries. Resolves and rejects as `follow` does. */
  renew(): Promise<void> {
    this.#isRenewed = true
    return this.follow()
  }

  /** Forgets keys that have no entry, unless something has changed since `last` was read. */
  forget(keys: readonly SuppressionKey[], last: SuppressionChange): void {
    if (last === this.last) for (const key of keys) this.#known.keys.delete(textOf(key))
  }

  async #read(): Promise<void> {
    while (this.#isOutdated) {
      this.#isOutdated = false
      const known = this.#isRenewed ? nothing() : this.#known
      this.#isRenewed = false
      await this.#readInto(known)
      this.#known = known
      this.#isLoaded = true
    }
  }

  async #readInto(known: Known): Promise<void> {
    for (;;) {
      const changes = await this.#changes(known.last, PAGE)
      for (const key of changes) known.keys.add(textOf(key))
      known.last = changes.at(-1) ?? known.last
      if (changes.length < PAGE) return
    }
  }
}
