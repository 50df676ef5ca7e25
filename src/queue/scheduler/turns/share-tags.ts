/**
 * Start-time fair queueing of shares (Goyal, Vin, Cheng 1996): each recipient that waits has a start tag, and the smallest is next. Tags are
 * numbers of recipients divided by the weight of the share. A share without mail begins at the present, and has earned nothing meanwhile.
 */
import { numberOf, NumberTable } from './number-table.ts'

export class ShareTags {
  /** Virtual time: the tag of the last start. */
  #time = 0
  /** Tags of the ends of what the shares were charged for, where they are after the virtual time. */
  readonly #ends = new NumberTable({ hasValues: true })

  get time(): number {
    return this.#time
  }

  /** Number of shares that were charged beyond the virtual time, or were a short time ago. */
  get size(): number {
    return this.#ends.size
  }

  /** Size of the table. */
  get bytes(): number {
    return this.#ends.bytes
  }

  /** Charges a share for recipients, and returns their start tag. */
  charge(share: string, recipients: number, weight: number): number {
    const key = numberOf(share)
    const start = Math.max(this.#time, this.#ends.get(key) ?? 0)
    if (this.#ends.isFull) this.#ends.keep((end) => end > this.#time)
    this.#ends.set(key, start + recipients / weight)
    return start
  }

  /** Takes a charge back, wholly or in part, for recipients that do not start. */
  refund(share: string, recipients: number, weight: number): void {
    const key = numberOf(share)
    const end = this.#ends.get(key)
    if (end !== undefined) this.#ends.set(key, end - recipients / weight)
  }

  /** Recipients with a start tag have started. */
  started(tag: number): void {
    this.#time = Math.max(this.#time, tag)
  }
}
