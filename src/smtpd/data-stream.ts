/**
 * The content of a message as it comes after DATA (RFC 5321 §4.1.1.4): finds its end, takes stuffed dots away and mends
 * line ends, so that what is stored consists of lines ending in CRLF and nothing else. Every decision depends on the
 * bytes alone, never on how they were cut into packets; a byte that does not decide yet is kept for the next call.
 *
 * Only CRLF.CRLF ends the content. A lone dot next to a bare LF neither ends it nor is kept: whatever the next server
 * takes for the end of a message is not in it (postfix smtpd_forbid_bare_newline = normalize). A stray CR becomes a
 * blank for the same reason (postfix cleanup_replace_stray_cr_lf).
 */

const LF = 0x0a
const CR = 0x0d
const DOT = 0x2e

const CRLF = Buffer.from('\r\n')
const BLANK = Buffer.from(' ')
const NOTHING = Buffer.alloc(0)

/** More pieces than this are joined: they came from a content made of fragments. */
const PIECES = 16

export interface ContentRead {
  /** The next bytes of the content, as they are to be stored. */
  readonly pieces: readonly Uint8Array[]
  /** What follows the end of the content; undefined while it goes on. */
  readonly rest: Buffer | undefined
}

export class DataStream {
  /** A line ended in LF alone. */
  bareNewline = false
  /** There was a NUL, which mail cannot contain (RFC 5321 §4.5.2 with 2.3.8). */
  nul = false
  readonly #lenient: boolean
  /** At most three bytes that do not decide anything yet. */
  #undecided: Buffer = NOTHING
  #atLineStart = true
  /** The line before ended in CRLF, as DATA itself did: only then can a dot line be the end. */
  #afterCrlf = true
  #bytes: Buffer = NOTHING
  #position = 0
  /** Where the bytes begin that were not given out yet. */
  #from = 0
  /** The next CR at or after the position; -1 when there is none. */
  #cr = 0
  #pieces: Uint8Array[] = []

  /** `lenient`: LF.LF ends the content too, for clients of one's own that know nothing better. */
  constructor({ lenient = false } = {}) {
    this.#lenient = lenient
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
    const pieces = this.#pieces.length > PIECES ? [Buffer.concat(this.#pieces)] : this.#pieces
    return { pieces, rest: ended ? this.#bytes.subarray(this.#position) : undefined }
  }

  /** Goes through the lines; true at the end of the content. */
  #lines(): boolean {
    while (this.#position < this.#bytes.length) {
      if (this.#atLineStart && this.#bytes[this.#position] === DOT) {
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

  /** A dot begins the line at the position. */
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

  /** Every CR before `end` that does not belong to a CRLF becomes a blank. */
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
  }

  /** The bytes end within a line: all of it is content, but a CR at the very end may be half of a CRLF. */
  #partOfLine(): false {
    const last = this.#bytes.length - 1
    const half = this.#bytes[last] === CR
    // After a CR that waits, the next byte is that CR and no dot, so the line need not be marked as begun.
    if (!half) this.#atLineStart = false
    return this.#wait(half ? last : this.#bytes.length)
  }

  #wait(from: number): false {
    // A copy, lest a byte keeps a large buffer alive.
    this.#undecided = from < this.#bytes.length ? Buffer.from(this.#bytes.subarray(from)) : NOTHING
    this.#position = from
    return false
  }

  /** Gives out what comes before `until` and goes on after `next`. */
  #give(until: number, next: number): void {
    if (until > this.#from) this.#pieces.push(this.#bytes.subarray(this.#from, until))
    this.#from = next
  }
}
