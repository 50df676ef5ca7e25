/**
 * Encodes content for transfer after DATA or BDAT (RFC 5321 §4.5.2, §2.3.8, RFC 3030). Every line ends in CR LF: a bare CR or LF
 * becomes CR LF. A line over the limit is continued on the next line after a space (Postfix smtp_line_length_limit). After DATA, a
 * dot at the start of a line is doubled, and a line with a single dot ends the content. No content and no division into chunks can
 * end the content early.
 */
import { NO_LIMIT, plainLines } from './plain-lines.ts'

const CR = 0x0d
const LF = 0x0a
const DOT = 0x2e

export class ContentEncoding {
  /** Last byte of the previous chunk. Initially LF, because the content begins at the start of a line. */
  #last = LF
  /** Number of octets in the current line so far. */
  #column = 0
  readonly #limit: number
  readonly #inserts: Inserts

  /** `limit` is the maximum number of octets of a line without its line end; 0 for no limit. `command` transfers the content. */
  constructor(limit = 0, command: 'DATA' | 'BDAT' = 'DATA') {
    this.#inserts = command === 'DATA' ? WITH_DOTS : WITHOUT_DOTS
    this.#limit = limit === 0 ? NO_LIMIT : limit
  }

  /** Encodes a chunk. A CR at its end is completed with the next chunk. */
  encode(chunk: Uint8Array): Uint8Array {
    const last = this.#last
    const column = last === CR || last === LF ? 0 : this.#column
    const { isPlain, lineStart } = plainLines(chunk, 0, { last, column }, { limit: this.#limit, dots: this.#inserts.dot === undefined })
    if (!isPlain) return this.#edited(chunk)
    this.#last = chunk.at(-1) ?? last
    this.#column = chunk.length - lineStart
    return chunk
  }

  #edited(chunk: Uint8Array): Uint8Array {
    const pieces: Uint8Array[] = []
    let from = 0
    let last = this.#last
    let column = this.#column
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i] ?? 0
      if (last === CR || last === LF) column = 0
      const isFull = column === this.#limit && byte !== CR && byte !== LF
      if (isFull) column = INSERTS.fold.length - CRLF_LENGTH
      const insert = isFull ? INSERTS.fold : insertBefore(byte, last, this.#inserts)
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

  /** Returns the end of the content after DATA, preceded by a line end when the last line has none. */
  end(): string {
    return `${this.lineEnd()}.\r\n`
  }

  /** Returns the missing part of the last line's end. */
  lineEnd(): string {
    return this.#last === LF ? '' : this.#last === CR ? '\n' : '\r\n'
  }
}

const CRLF_LENGTH = 2
const INSERTS = {
  fold: Buffer.from('\r\n '),
  lf: Buffer.from('\n'),
  cr: Buffer.from('\r'),
}

/** Octets to insert before a dot at the start of a line. */
interface Inserts {
  /** Insertion after CR LF; undefined for none. */
  readonly dot: Uint8Array | undefined
  /** Insertion after a bare CR: the missing LF comes first. */
  readonly lfDot: Uint8Array
}

const WITH_DOTS: Inserts = { dot: Buffer.from('.'), lfDot: Buffer.from('\n.') }
const WITHOUT_DOTS: Inserts = { dot: undefined, lfDot: INSERTS.lf }

function insertBefore(byte: number, last: number, { dot, lfDot }: Inserts): Uint8Array | undefined {
  if (last === CR && byte !== LF) return byte === DOT ? lfDot : INSERTS.lf
  if (byte === LF && last !== CR) return INSERTS.cr
  return byte === DOT && last === LF ? dot : undefined
}
