/**
 * Reads the content after DATA (RFC 5321 §4.1.1.4). It finds the end, removes stuffed dots and normalizes line ends, so that all
 * stored lines end in CRLF. Every decision depends on the bytes alone, not on the packets in which they arrive. A byte whose
 * meaning depends on later bytes is kept for the next call.
 *
 * Only CRLF.CRLF ends the content. A line with a single dot next to a bare LF does not end it, and is removed, so that no other
 * server can take that line for the end of the message (Postfix smtpd_forbid_bare_newline = normalize). A stray CR is replaced by
 * a space for the same reason (Postfix cleanup_replace_stray_cr_lf).
 */
import { NO_LIMIT, plainLines } from '../../mail/plain-lines.ts'

const LF = 0x0a
const CR = 0x0d
const DOT = 0x2e

const AT_LINE_START = { last: LF, column: 0 }
const WITHIN_LINE = { last: DOT, column: 1 }
const DOTTED = { limit: NO_LIMIT, dots: false }
const CHUNKED = { limit: NO_LIMIT, dots: true }

const CRLF = Buffer.from('\r\n')
const BLANK = Buffer.from(' ')
const NOTHING = Buffer.alloc(0)

/** Maximum number of pieces that one call returns. More pieces, as content with many stuffed dots produces, are joined. */
const MOST_PIECES = 16

export interface ContentRead {
  /** The next bytes of the content in the form in which they are stored. */
  readonly pieces: readonly Uint8Array[]
  /** The bytes after the end of the content; undefined before its end. */
  readonly rest: Buffer | undefined
}

/** Reads content from the bytes of a client. */
export interface ContentReader {
  read(bytes: Buffer): ContentRead
}

export class DataStream implements ContentReader {
  /** True when a line ended in LF without CR. */
  bareNewline = false
  /** True when the content has a NUL, which RFC 5322 §2.3 does not allow. */
  nul = false
  readonly #lenient: boolean
  readonly #chunked: boolean
  /** At most three bytes whose meaning depends on the bytes that follow. */
  #undecided: Buffer = NOTHING
  #atLineStart = true
  /** True when the previous line ended in CRLF, or when the content begins. Only then can a line with a single dot be the end. */
  #afterCrlf = true
  #bytes: Buffer = NOTHING
  #position = 0
  /** Start of the bytes that are not returned yet. */
  #from = 0
  /** Position of the next CR; -1 when there is none. */
  #cr = 0
  #pieces: Uint8Array[] = []

  /**
   * With `lenient`, LF.LF ends the content too. It is set for the clients in smtpd_forbid_bare_newline_exclusions. With `chunked`,
   * the content is that of BDAT: a dot at the start of a line has no meaning.
   */
  constructor({ lenient = false, chunked = false } = {}) {
    this.#lenient = lenient
    this.#chunked = chunked
  }

  read(chunk: Buffer): ContentRead {
    this.#bytes = this.#undecided.length === 0 ? chunk : Buffer.concat([this.#undecided, chunk])
    this.#undecided = NOTHING
    this.#position = 0
    this.#from = 0
    this.#cr = this.#bytes.indexOf(CR)
    this.#pieces = []
    const ended = this.#lines()
    if (!ended) this.#give(this.#bytes.length - this.#undecided.length, this.#bytes.length)
    this.nul ||= this.#bytes.subarray(0, this.#position).includes(0)
    const pieces = this.#pieces.length > MOST_PIECES ? [Buffer.concat(this.#pieces)] : this.#pieces
    return { pieces, rest: ended ? this.#bytes.subarray(this.#position) : undefined }
  }

  /**
   * Ends chunked content. Returns the rest of the last line: a space for a kept CR, and the missing line end. Empty for a complete line.
   */
  finish(): readonly Uint8Array[] {
    if (this.#undecided.length === 0 && this.#atLineStart) return []
    this.#atLineStart = true
    const kept = this.#undecided.length > 0 ? [BLANK] : []
    this.#undecided = NOTHING
    return [...kept, CRLF]
  }

  /** Reads lines. Returns true at the end of the content. */
  #lines(): boolean {
    this.#passPlainLines()
    while (this.#position < this.#bytes.length) {
      if (this.#atLineStart && !this.#chunked && this.#bytes[this.#position] === DOT) {
        const dot = this.#dotLine()
        if (dot === 'undecided') return this.#wait(this.#position)
        if (dot === 'end') return true
        if (dot === 'dropped') continue
      }
      const newline = this.#bytes.indexOf(LF, this.#position)
      this.#blankStrayReturns(newline < 0 ? this.#bytes.length - 1 : newline - 1)
      if (newline < 0) return this.#partOfLine()
      this.#endLine(newline)
    }
    return false
  }

  /** Passes over complete lines that are stored as they are. */
  #passPlainLines(): void {
    const from = this.#position
    // A line that has begun before has at least one octet, which is no CR: a CR at the end of a packet is kept for the next one.
    const state = this.#atLineStart ? AT_LINE_START : WITHIN_LINE
    const { lineStart } = plainLines(this.#bytes, from, state, this.#chunked ? CHUNKED : DOTTED)
    if (lineStart <= from) return
    this.#position = lineStart
    this.#atLineStart = true
    this.#afterCrlf = true
  }

  /** Reads a line that begins with a dot. */
  #dotLine(): 'undecided' | 'end' | 'dropped' | 'stuffed' {
    const at = this.#position
    const [second, third] = [this.#bytes[at + 1], this.#bytes[at + 2]]
    if (second === undefined || (second === CR && third === undefined)) return 'undecided'
    const withCr = second === CR && third === LF
    if (!withCr && second !== LF) {
      this.#give(at, at + 1)
      this.#position = at + 1
      this.#atLineStart = false
      return 'stuffed'
    }
    const next = at + (withCr ? 3 : 2)
    this.#give(at, next)
    this.#position = next
    const ends = this.#lenient || (withCr && this.#afterCrlf)
    this.#afterCrlf = withCr
    this.bareNewline ||= !withCr
    return ends ? 'end' : 'dropped'
  }

  /** Replaces every CR before `end` that is not part of a CRLF with a space. */
  #blankStrayReturns(end: number): void {
    if (this.#cr >= 0 && this.#cr < this.#position) this.#cr = this.#bytes.indexOf(CR, this.#position)
    while (this.#cr >= 0 && this.#cr < end) {
      this.#give(this.#cr, this.#cr + 1)
      this.#pieces.push(BLANK)
      this.#cr = this.#bytes.indexOf(CR, this.#cr + 1)
    }
  }

  #endLine(newline: number): void {
    const withCr = newline > this.#position && this.#bytes[newline - 1] === CR
    if (!withCr) {
      this.#give(newline, newline + 1)
      this.#pieces.push(CRLF)
      this.bareNewline = true
    }
    this.#afterCrlf = withCr
    this.#atLineStart = true
    this.#position = newline + 1
    // Lines that end in a bare LF mostly follow each other.
    if (withCr) this.#passPlainLines()
  }

  /** Reads the start of a line whose end has not been received. A CR at the very end may be the first half of a CRLF. */
  #partOfLine(): false {
    const last = this.#bytes.length - 1
    const half = this.#bytes[last] === CR
    // A kept CR is the first byte of the next call. It is not a dot, so the line need not be marked as started.
    if (!half) this.#atLineStart = false
    return this.#wait(half ? last : this.#bytes.length)
  }

  #wait(from: number): false {
    // Copied, so that a few bytes do not keep a large buffer in memory.
    this.#undecided = from < this.#bytes.length ? Buffer.from(this.#bytes.subarray(from)) : NOTHING
    this.#position = from
    return false
  }

  /** Adds the bytes from `#from` to `until` to the pieces. The next piece begins at `next`. */
  #give(until: number, next: number): void {
    if (until > this.#from) this.#pieces.push(this.#bytes.subarray(this.#from, until))
    this.#from = next
  }
}

/** Reads the octets of one chunk after BDAT (RFC 3030 §2). The chunk ends by its length: no sequence of octets in it is special. */
export class ChunkReader implements ContentReader {
  #left: number
  readonly #content: DataStream | null

  /** `content` normalizes the line ends of all chunks of a message. With null, the octets are skipped. */
  constructor(octets: number, content: DataStream | null) {
    this.#left = octets
    this.#content = content
  }

  read(bytes: Buffer): ContentRead {
    const own = bytes.subarray(0, this.#left)
    this.#left -= own.length
    const pieces = this.#content?.read(own).pieces ?? []
    return { pieces, rest: this.#left === 0 ? bytes.subarray(own.length) : undefined }
  }
}
