/** Finds the fields of a header (RFC 5322 §2.2), their positions, and the end of the header. No field has an influence on routing. */

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const TAB = 0x09
const COLON = 0x3a
const DEL = 0x7f

/** Maximum length of a field name, which is the maximum line length (RFC 5322 §2.1.1). */
export const LINE_LENGTH_LIMIT = 998

interface HeaderField {
  /** Field name in lower case. */
  readonly name: string
  readonly start: number
  /** Offset after the colon. */
  readonly valueStart: number
  /** Offset after the field, with its continuation lines and its line end. */
  readonly end: number
  /** True for a `From ` line of an mbox file before the header, which is renamed to X-Mailbox-Line as in Postfix. */
  readonly mailboxLine: boolean
}

export interface HeaderEnd {
  /** Offset of the first byte after the fields. */
  readonly at: number
  /** True when an empty line, or the end of the content, follows the fields. */
  readonly separated: boolean
}

/** A field with its value unfolded: line ends and runs of blanks are replaced by one space (RFC 5322 §2.2.3). */
export interface UnfoldedField {
  /** Field name in lower case. */
  readonly name: string
  readonly value: string
}

/** Yields the fields of a complete content. The body begins at the first line that is not a field. */
export function* fieldsOf(content: Uint8Array): Generator<UnfoldedField> {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  const scan = new HeaderScan()
  scan.scan(bytes)
  for (const field of scan.fields) if (!field.mailboxLine) yield { name: field.name, value: unfolded(bytes, field) }
}

/** A field as it was received. Texts have one character per octet. */
export interface RawField {
  /** Field name in lower case. */
  readonly name: string
  /** The field name as written, with the colon. */
  readonly start: string
  /** Text after the colon, with its line ends. */
  readonly value: string
}

/** The fields of a header, as they were received. */
export function rawFieldsOf(header: Uint8Array): readonly RawField[] {
  const bytes = Buffer.from(header.buffer, header.byteOffset, header.byteLength)
  const scan = new HeaderScan()
  scan.scan(bytes)
  return scan.fields.map(({ name, start, valueStart, end }) => ({
    name,
    start: bytes.toString('latin1', start, valueStart),
    value: bytes.toString('latin1', valueStart, end),
  }))
}

/** Length of the header in bytes, without the empty line after it. */
export function headerLength(content: Uint8Array): number {
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  return new HeaderScan().scan(bytes).at
}

const unfolded = (bytes: Buffer, { valueStart, end }: HeaderField): string =>
  bytes.toString('utf8', valueStart, end).replace(/\s+/g, ' ').trim()

class HeaderScan {
  readonly #fields: { name: string; start: number; valueStart: number; end: number; mailboxLine: boolean }[] = []
  #position = 0

  get fields(): readonly HeaderField[] {
    return this.#fields
  }

  /** Scans a complete content. Returns the end of its header. */
  scan(bytes: Buffer): HeaderEnd {
    for (;;) {
      const start = this.#position
      const newline = bytes.indexOf(LF, start)
      const end = newline < 0 ? bytes.length : newline + 1
      if (start === end) return { at: start, separated: true }
      const verdict = this.#line(bytes, start, end)
      if (verdict !== undefined) return verdict
      this.#position = end
    }
  }

  #line(bytes: Buffer, start: number, end: number): HeaderEnd | undefined {
    const first = bytes[start]
    if (first === LF || (first === CR && bytes[start + 1] === LF)) return { at: start, separated: true }
    if (this.#continues(bytes, start)) {
      const last = this.#fields.at(-1)
      if (last !== undefined) last.end = end
      return undefined
    }
    // Accepted only before all fields. Mail that was resent from an mbox file may have several such lines.
    if (this.#fields.every((field) => field.mailboxLine) && isMailboxLine(bytes, start)) {
      this.#fields.push({ name: 'x-mailbox-line', start, valueStart: start, end, mailboxLine: true })
      return undefined
    }
    const found = fieldName(bytes, start, end)
    if (found === undefined) return { at: start, separated: false }
    this.#fields.push({ name: found.name, start, valueStart: found.colon + 1, end, mailboxLine: false })
    return undefined
  }

  #continues(bytes: Buffer, start: number): boolean {
    const first = bytes[start]
    return (first === SPACE || first === TAB) && this.#fields.length > 0
  }
}

export const isMailboxLine = (bytes: Buffer, start: number): boolean => /^>*From /.test(bytes.toString('latin1', start, start + 80))

/** The name of the field at `start`, in lower case, and the offset of its colon. Undefined when there is no valid name. */
export function fieldName(bytes: Buffer, start: number, end: number): { readonly name: string; readonly colon: number } | undefined {
  const colon = nameEnd(bytes, start, end)
  return colon < 0 ? undefined : { name: bytes.toString('latin1', start, colon).trimEnd().toLowerCase(), colon }
}

/** True for printable ASCII except the colon (RFC 5322 §3.6.8). */
const isNameOctet = (octet = 0): boolean => octet > SPACE && octet < DEL && octet !== COLON

/** Offset of the colon after a valid field name; -1 when there is none. Blanks before the colon are accepted. */
function nameEnd(bytes: Buffer, start: number, end: number): number {
  const limit = Math.min(end, start + LINE_LENGTH_LIMIT)
  let at = start
  while (at < limit && isNameOctet(bytes[at])) at++
  if (at === start) return -1
  while (at < limit && (bytes[at] === SPACE || bytes[at] === TAB)) at++
  return at < limit && bytes[at] === COLON ? at : -1
}
