/**
 * Hashes the body of a message with SHA-256 while it arrives, in the canonical form of RFC 6376: `relaxed` (§3.4.4) or `simple`
 * (§3.4.3). Needs memory for one incomplete line.
 */
import { createHash } from 'node:crypto'

export type Canonicalization = 'relaxed' | 'simple'

const LF = 0x0a
const CRLF = '\r\n'

export class BodyHash {
  readonly #hash = createHash('sha256')
  readonly #form: Canonicalization
  /** Start of the line whose end has not been received. */
  #line: Buffer[] = []
  /** Number of empty lines that count only if another line follows. */
  #emptyLines = 0
  #isEmpty = true

  constructor(form: Canonicalization = 'relaxed') {
    this.#form = form
  }

  /** Adds bytes whose lines end in CRLF. */
  write(bytes: Uint8Array): void {
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const end = piece.lastIndexOf(LF) + 1
    if (end > 0) {
      this.#lines(this.#line.length === 0 ? piece.subarray(0, end) : Buffer.concat([...this.#line, piece.subarray(0, end)]))
      this.#line = []
    }
    // Copied, because the caller may reuse its buffer.
    if (end < piece.length) this.#line.push(Buffer.from(piece.subarray(end)))
  }

  /** The hash in base64. */
  digest(): string {
    if (this.#line.length > 0) this.write(Buffer.from(CRLF))
    if (this.#isEmpty && this.#form === 'simple') this.#hash.update(CRLF)
    return this.#hash.digest('base64')
  }

  #lines(lines: Buffer): void {
    const canonical = this.#form === 'simple' || isRelaxed(lines) ? lines : relaxed(lines)
    let end = canonical.length
    let empty = 0
    for (; end > 0 && (end === CRLF.length || canonical[end - CRLF.length - 1] === LF); end -= CRLF.length) empty++
    if (end > 0) {
      if (this.#emptyLines > 0) this.#hash.update(CRLF.repeat(this.#emptyLines))
      this.#hash.update(canonical.subarray(0, end))
      this.#emptyLines = 0
      this.#isEmpty = false
    }
    this.#emptyLines += empty
  }
}

/** True when the canonical form of whole lines is the lines themselves, as in base64 and most text. */
const isRelaxed = (lines: Buffer): boolean => !lines.includes('\t') && !lines.includes('  ') && !lines.includes(' \r')

/** Runs of blanks become one space, and blanks at the ends of lines are removed. */
const relaxed = (lines: Buffer): Buffer =>
  Buffer.from(
    lines
      .toString('latin1')
      .replaceAll(/[ \t]+/g, ' ')
      .replaceAll(' \r\n', CRLF),
    'latin1',
  )
