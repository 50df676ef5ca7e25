/**
 * The header section of a message, found in bytes that arrive piece by piece: which fields it has and where it ends.
 * It looks at names and places only; nobody is routed by what stands in a header (RFC 5322 §2.2, postfix cleanup).
 */

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const TAB = 0x09
const COLON = 0x3a

/** Longer names are no names; RFC 5322 lines end at 998 anyway. */
const NAME_LIMIT = 998

export interface HeaderField {
  /** In lower case. */
  readonly name: string
  /** Where the field begins, where its value begins, and where the next line begins. */
  readonly start: number
  readonly valueStart: number
  readonly end: number
  /** No field but a `From ` line of a mailbox file that was sent along; it goes on as X-Mailbox-Line. */
  readonly mailboxLine: boolean
}

/** Where the header ended, and whether an empty line stands there as it should. */
export interface HeaderEnd {
  readonly at: number
  readonly separated: boolean
}

/** Scans a header that grows. Always call it with all bytes from the beginning of the message. */
export class HeaderScan {
  readonly #fields: { name: string; start: number; valueStart: number; end: number; mailboxLine: boolean }[] = []
  #position = 0

  get fields(): readonly HeaderField[] {
    return this.#fields
  }

  /** Reads on; undefined while the header goes on. `complete` says that no more bytes will come. */
  scan(bytes: Buffer, complete: boolean): HeaderEnd | undefined {
    for (;;) {
      const start = this.#position
      const newline = bytes.indexOf(LF, start)
      if (newline < 0 && !complete) return undefined
      const end = newline < 0 ? bytes.length : newline + 1
      if (start === end) return { at: start, separated: true }
      const verdict = this.#line(bytes, start, end)
      if (verdict !== undefined) return verdict
      this.#position = end
    }
  }

  /** The line that is still growing cannot become a field any more: the body has begun. */
  endsAtGrowingLine(bytes: Buffer): HeaderEnd | undefined {
    const start = this.#position
    if (this.#continues(bytes, start) || isMailboxLine(bytes, start)) return undefined
    const colon = nameEnd(bytes, start, bytes.length)
    return colon < 0 ? { at: start, separated: false } : undefined
  }

  /** The value of the first field of that name on one line, as bytes were sent. */
  value(bytes: Buffer, name: string): string | undefined {
    const field = this.#fields.find((one) => one.name === name)
    return field && bytes.toString('utf8', field.valueStart, field.end).replace(/\s+/g, ' ').trim()
  }

  #line(bytes: Buffer, start: number, end: number): HeaderEnd | undefined {
    const first = bytes[start]
    if (first === LF || (first === CR && bytes[start + 1] === LF)) return { at: start, separated: true }
    if (this.#continues(bytes, start)) {
      const last = this.#fields.at(-1)
      if (last !== undefined) last.end = end
      return undefined
    }
    // Only before any field, as mbox readers leave it; several of them are seen in mail that was bounced by hand.
    if (this.#fields.every((field) => field.mailboxLine) && isMailboxLine(bytes, start)) {
      this.#fields.push({ name: 'x-mailbox-line', start, valueStart: start, end, mailboxLine: true })
      return undefined
    }
    const colon = nameEnd(bytes, start, end)
    if (colon < 0) return { at: start, separated: false }
    const name = bytes.toString('latin1', start, colon).trimEnd().toLowerCase()
    this.#fields.push({ name, start, valueStart: colon + 1, end, mailboxLine: false })
    return undefined
  }

  #continues(bytes: Buffer, start: number): boolean {
    const first = bytes[start]
    return (first === SPACE || first === TAB) && this.#fields.length > 0
  }
}

const isMailboxLine = (bytes: Buffer, start: number): boolean => /^>*From /.test(bytes.toString('latin1', start, start + 80))

/** The place of the colon after a well-formed field name (blanks before it are tolerated), or -1. */
function nameEnd(bytes: Buffer, start: number, end: number): number {
  const line = bytes.subarray(start, Math.min(end, start + NAME_LIMIT))
  const colon = line.indexOf(COLON)
  return colon > 0 && /^[!-9;-~]+[ \t]*$/.test(line.toString('latin1', 0, colon)) ? start + colon : -1
}
