/**
 * Cuts a content that comes in pieces into the parts in which it is stored: 64 kB each, the last one shorter.
 */

export const PART_SIZE = 65_536

/** Pieces held before they are joined: thousands of tiny ones would cost far more than their bytes. */
const PIECES = 64

export class Parts {
  readonly #full: Buffer[] = []
  /** What does not fill a part yet. */
  #pieces: Uint8Array[] = []
  #pending = 0
  #bytes = 0

  /** Bytes added so far, those that were taken included. */
  get bytes(): number {
    return this.#bytes
  }

  /** How many full parts wait to be taken. */
  get full(): number {
    return this.#full.length
  }

  add(piece: Uint8Array): void {
    this.#bytes += piece.byteLength
    let from = 0
    for (let room = this.#room; piece.byteLength - from >= room; room = this.#room) {
      this.#hold(piece.subarray(from, from + room))
      this.#full.push(Buffer.concat(this.#pieces, PART_SIZE))
      this.#pieces = []
      this.#pending = 0
      from += room
    }
    this.#hold(piece.subarray(from))
  }

  /** The full parts; the rest stays. */
  takeFull(): readonly Buffer[] {
    return this.#full.splice(0)
  }

  /** Everything that is left. */
  takeAll(): readonly Buffer[] {
    const rest = this.#pending === 0 ? [] : [Buffer.concat(this.#pieces, this.#pending)]
    const all = [...this.#full, ...rest]
    this.clear()
    return all
  }

  /** Forgets what was not taken. */
  clear(): void {
    this.#full.length = 0
    this.#pieces = []
    this.#pending = 0
  }

  /** Bytes until the part is full. */
  get #room(): number {
    return PART_SIZE - this.#pending
  }

  #hold(piece: Uint8Array): void {
    if (piece.byteLength === 0) return
    this.#pieces.push(piece)
    this.#pending += piece.byteLength
    if (this.#pieces.length >= PIECES) this.#pieces = [Buffer.concat(this.#pieces, this.#pending)]
  }
}
