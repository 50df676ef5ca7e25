/** Reserves message ids from the store in blocks, ahead of use, so that a message gets its id without waiting for a commit. */
import type { MessageId } from '../mail/message.ts'
import { errorMessage } from '../system/caught-error.ts'
import { StoreUnavailable } from './queue-store.ts'

/**
 * Number of ids per block. One block is enough for every connection to begin a message while the store does not answer. A daemon
 * that stops leaves fewer than two blocks unused, which is little of the 2^36 ids.
 */
export const ID_BLOCK = 4_096

/** Reserves `count` ids. Returns the ids at once, or a promise that resolves when the store has committed the reservation. */
type ReserveIds = (count: number) => readonly MessageId[] | Promise<readonly MessageId[]>

export class IdBuffer {
  readonly #reserve: ReserveIds
  #ids: readonly MessageId[]
  #used = 0
  #highest: MessageId
  #reserving = false
  #failure: unknown

  constructor(reserve: ReserveIds, first: readonly MessageId[] = []) {
    this.#reserve = reserve
    this.#ids = first
    this.#highest = first.at(-1) ?? 0
  }

  /** The highest id of all blocks so far. */
  get highest(): MessageId {
    return this.#highest
  }

  /** Drops the unused ids up to `last`, and reserves others. */
  dropUpTo(last: MessageId): void {
    this.#ids = this.#ids.slice(this.#used).filter((id) => id > last)
    this.#used = 0
    if (this.#ids.length <= ID_BLOCK / 2) this.#refill()
  }

  /** Throws StoreUnavailable when no ids are left because the store has not committed a new block. */
  next(): MessageId {
    if (this.#ids.length - this.#used <= ID_BLOCK / 2) this.#refill()
    const id = this.#ids[this.#used]
    if (id === undefined) throw new StoreUnavailable(`no message ids are left: ${this.#reason}`, { cause: this.#failure })
    this.#used++
    return id
  }

  get #reason(): string {
    return this.#failure === undefined ? 'the store has not reserved more' : errorMessage(this.#failure)
  }

  /** Reserves the next block. After a failure, the next request for an id tries again. */
  #refill(): void {
    if (this.#reserving) return
    try {
      const reserved = this.#reserve(ID_BLOCK)
      if (!(reserved instanceof Promise)) return this.#add(reserved)
      this.#reserving = true
      reserved.then(
        (ids) => this.#add(ids),
        (error: unknown) => this.#failed(error),
      )
    } catch (error) {
      this.#failed(error)
    }
  }

  #add(ids: readonly MessageId[]): void {
    this.#reserving = false
    this.#ids = [...this.#ids.slice(this.#used), ...ids]
    this.#used = 0
    this.#highest = ids.at(-1) ?? this.#highest
  }

  #failed(error: unknown): void {
    this.#reserving = false
    this.#failure = error
  }
}
