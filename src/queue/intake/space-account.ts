/**
 * Accounts the space on the disk for messages that are being received: the bytes that the store has free, less the bytes that are
 * promised to messages on their way. A message gets its bytes promised before any of them is stored, so that messages that
 * arrive together do not fill the disk and fail together.
 */
import type { ContentId } from '../../mail/message.ts'
import type { StoreUpkeep } from '../../store/store-upkeep.ts'
import { SECOND, type Clock, type Duration } from '../../system/clock.ts'

/** Number of bytes on the disk per byte of content: chunks of 64 kB in pages of 8 kB, with their index. */
const OVERHEAD = 1.07

/** Maximum age in ms of a sample by which mail is accepted: other files alone do not fill a disk in that time. */
const SAMPLE_AGE: Duration = SECOND
/** Maximum age in ms of a sample by which mail is refused, because space may have become free since. */
const REFUSAL_AGE: Duration = 20

export class SpaceAccount {
  readonly #store: Pick<StoreUpkeep, 'freeSpace'>
  readonly #clock: Clock
  readonly #reclaim: (bytes: number) => Promise<boolean>
  /** Free bytes as of a time on the monotonic clock. */
  #sample: { readonly at: Duration; readonly free: number } = { at: -Infinity, free: 0 }
  /** The last sample that was asked for; null before the first one and after a failure. */
  #latest: { readonly at: Duration; readonly taken: Promise<void> } | null = null
  /** Bytes stored since the sample. */
  #stored = 0
  /** Bytes promised to a message and not stored. */
  readonly #promised = new Map<ContentId, number>()
  #promisedInAll = 0

  /** `reclaim` makes room for a number of bytes, and resolves with false when there is nothing to delete for it. */
  constructor(store: Pick<StoreUpkeep, 'freeSpace'>, clock: Clock, reclaim: (bytes: number) => Promise<boolean>) {
    this.#store = store
    this.#clock = clock
    this.#reclaim = reclaim
  }

  /**
   * Whether more than `bytes` bytes are neither used nor promised. Returns true at once when the last sample shows it, otherwise a
   * promise, which rejects with StoreUnavailable.
   */
  hasMoreThan(bytes: number): Promise<boolean> | true {
    const age = this.#clock.monotonic() - this.#sample.at
    return age < SAMPLE_AGE && this.available > bytes ? true : this.#hasMoreThan(bytes)
  }

  async #hasMoreThan(bytes: number): Promise<boolean> {
    await this.#shareSample()
    // Each refusal has a sample of its own: one that was asked for earlier does not show the space of messages refused since.
    const now = this.#clock.monotonic()
    if (this.available <= bytes && now - this.#sample.at >= REFUSAL_AGE) await this.#take(now)
    // A page that becomes free is counted with the next sample.
    if (this.available <= bytes && (await this.#reclaim((bytes - this.available) * OVERHEAD + 1))) await this.#take(now)
    return this.available > bytes
  }

  /** Discards the last sample. */
  forget(): void {
    this.#sample = { at: -Infinity, free: 0 }
    this.#latest = null
  }

  /** Number of messages with a promise. */
  get arriving(): number {
    return this.#promised.size
  }

  /** Bytes that are neither used nor promised, as of the last sample. */
  get available(): number {
    return this.#sample.free - this.#stored - this.#promisedInAll
  }

  /** Waits for a sample of at most SAMPLE_AGE. All messages that ask for one meanwhile share it. */
  #shareSample(): Promise<void> {
    const now = this.#clock.monotonic()
    if (this.#latest === null || now - this.#latest.at >= SAMPLE_AGE) this.#latest = { at: now, taken: this.#take(now) }
    return this.#latest.taken
  }

  async #take(at: Duration): Promise<void> {
    try {
      const free = await this.#store.freeSpace()
      this.#sample = { at, free }
      this.#stored = 0
    } catch (error) {
      this.#latest = null
      throw error
    }
  }

  /**
   * Promises a message the space for `bytes` bytes of content that are not stored yet, including space that was promised before.
   * Returns false, without effect, when that space is not available.
   */
  async promise(content: ContentId, bytes: number): Promise<boolean> {
    const wanted = bytes * OVERHEAD
    const more = wanted - (this.#promised.get(content) ?? 0)
    if (more > 0 && !(await this.hasMoreThan(more))) return false
    // The space may have been promised to another message during the wait.
    if (more > Math.max(0, this.available)) return false
    if (more > 0) this.#promise(content, more)
    return true
  }

  /** Records that `bytes` bytes of content of a message were stored. */
  stored(content: ContentId, bytes: number): void {
    const size = bytes * OVERHEAD
    this.#stored += size
    this.#promise(content, -Math.min(size, this.#promised.get(content) ?? 0))
  }

  /** Withdraws the promise to a message that was queued or abandoned. */
  ended(content: ContentId): void {
    this.#promisedInAll -= this.#promised.get(content) ?? 0
    this.#promised.delete(content)
  }

  #promise(content: ContentId, more: number): void {
    this.#promised.set(content, (this.#promised.get(content) ?? 0) + more)
    this.#promisedInAll += more
  }
}
