/**
 * Content as it goes over the wire (RFC 5321 §4.5.2, §2.3.8): lines end in CR LF, a bare CR or LF becomes one, a dot
 * that begins a line is doubled, and a dot alone ends it. Lines that are too long go on in a new one after a blank (postfix
 * smtp_line_length_limit). Nothing that a receiver could take for the end gets through, however the content is cut into
 * chunks.
 */

const CR = 0x0d
const LF = 0x0a
const DOT = 0x2e

export class DotStuffing {
  /** The byte before the next chunk; content begins like a line. */
  #last = LF
  /** Octets of the line so far. */
  #column = 0
  readonly #limit: number

  /** Octets that a line may have without its end; 0 for no limit. */
  constructor(limit = 0) {
    this.#limit = limit === 0 ? Infinity : limit
  }

  /** The chunk in wire form. A CR at its end is completed with the next chunk. */
  encode(chunk: Uint8Array): Uint8Array {
    const pieces: Uint8Array[] = []
    let from = 0
    let last = this.#last
    let column = this.#column
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i] ?? 0
      if (last === CR || last === LF) column = 0
      const isFull = column === this.#limit && byte !== CR && byte !== LF
      if (isFull) column = INSERTS.fold.length - CRLF_LENGTH
      const insert = isFull ? INSERTS.fold : insertBefore(byte, last)
      if (insert !== undefined) {
        pieces.push(chunk.subarray(from, i), insert)
        from = i
      }
      last = byte
      column++
    }
    this.#last = last
    this.#column = column
    if (pieces.length === 0) return chunk
    pieces.push(chunk.subarray(from))
    return Buffer.concat(pieces)
  }

  /** What ends the content, its last line included. */
  end(): string {
    return this.#last === LF ? '.\r\n' : this.#last === CR ? '\n.\r\n' : '\r\n.\r\n'
  }
}

const CRLF_LENGTH = 2
const INSERTS = {
  fold: Buffer.from('\r\n '),
  lf: Buffer.from('\n'),
  cr: Buffer.from('\r'),
  dot: Buffer.from('.'),
  lfDot: Buffer.from('\n.'),
}

function insertBefore(byte: number, last: number): Uint8Array | undefined {
  if (last === CR && byte !== LF) return byte === DOT ? INSERTS.lfDot : INSERTS.lf
  if (byte === LF && last !== CR) return INSERTS.cr
  if (byte === DOT && last === LF) return INSERTS.dot
  return undefined
}
