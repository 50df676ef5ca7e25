/**
 * The chunk is the unit in which message content is stored and transferred between threads. Every chunk except the last has
 * CHUNK_BYTES bytes. Each chunk has a buffer of its own, so that a transfer of the buffer moves no other data.
 */

export const CHUNK_BYTES = 65_536

/** Maximum number of chunks of one content; also the factor between a content's id and the row numbers of its chunks. */
export const CHUNKS_PER_CONTENT = 65_536

/**
 * Number of pieces of an incomplete chunk at which the pieces are joined. Thousands of small pieces need far more memory than the
 * bytes they hold.
 */
const PIECES = 64

/** Splits a content that arrives in pieces of any size into chunks. Each byte is copied once, when its chunk is complete. */
export class Chunker {
  readonly #full: Uint8Array[] = []
  /** Pieces that are not part of a complete chunk yet. */
  #pieces: Uint8Array[] = []
  #pending = 0
  #bytes = 0

  /** Number of bytes added so far, including bytes already taken. */
  get bytes(): number {
    return this.#bytes
  }

  /** Number of complete chunks that are not taken yet. */
  get full(): number {
    return this.#full.length
  }

  /** Adds a piece, which must not change before its chunk is taken. */
  add(piece: Uint8Array): void {
    this.#bytes += piece.byteLength
    let from = 0
    for (let room = this.#room; piece.byteLength - from >= room; room = this.#room) {
      this.#hold(piece.subarray(from, from + room))
      this.#full.push(joined(this.#pieces, CHUNK_BYTES))
      this.#pieces = []
      this.#pending = 0
      from += room
    }
    this.#hold(piece.subarray(from))
  }

  /** Takes the complete chunks; an incomplete one stays. */
  takeFull(): readonly Uint8Array[] {
    return this.#full.splice(0)
  }

  /** Takes all chunks; the last one may be short. */
  takeAll(): readonly Uint8Array[] {
    const rest = this.#pending === 0 ? [] : [joined(this.#pieces, this.#pending)]
    const all = [...this.#full, ...rest]
    this.clear()
    return all
  }

  /** Discards all bytes that were not taken. */
  clear(): void {
    this.#full.length = 0
    this.#pieces = []
    this.#pending = 0
  }

  /** Number of bytes missing from the incomplete chunk. */
  get #room(): number {
    return CHUNK_BYTES - this.#pending
  }

  #hold(piece: Uint8Array): void {
    if (piece.byteLength === 0) return
    this.#pieces.push(piece)
    this.#pending += piece.byteLength
    if (this.#pieces.length >= PIECES) this.#pieces = [joined(this.#pieces, this.#pending)]
  }
}

/** Splits a complete content, given in pieces, into chunks. */
export function inChunks(...pieces: readonly Uint8Array[]): readonly Uint8Array[] {
  const chunker = new Chunker()
  for (const piece of pieces) chunker.add(piece)
  return chunker.takeAll()
}

/**
 * Throws unless every chunk has CHUNK_BYTES bytes; the last may have fewer. Readers rely on this size to find the chunk that holds
 * an offset.
 */
export function assertChunks(chunks: readonly Uint8Array[]): void {
  chunks.forEach((chunk, n) => {
    if (chunk.byteLength > CHUNK_BYTES || (chunk.byteLength < CHUNK_BYTES && n < chunks.length - 1)) {
      throw new Error(`chunk ${n} of ${chunks.length} has ${chunk.byteLength} bytes, not ${CHUNK_BYTES}: make chunks with Chunker`)
    }
  })
}

/** Number of bytes in all chunks of a list. */
export const bytesOf = (chunks: readonly Uint8Array[]): number => chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0)

/** Frees the memory of a chunk, which the garbage collector would do much later. A small chunk may share its buffer with other data. */
export function freeChunk({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0)
}

/** Joins pieces in a new buffer. Buffer.concat would allocate short results from Node's shared pool. */
function joined(pieces: readonly Uint8Array[], bytes: number): Uint8Array {
  const whole = Buffer.allocUnsafeSlow(bytes)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.byteLength
  }
  return whole
}
