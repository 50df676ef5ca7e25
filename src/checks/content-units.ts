/**
 * Splits the content of a message, with CRLF line ends, into the units that checks examine: header fields with their continuation
 * lines, and body lines. The fields of body parts and attached messages are header fields too. Holds one field at a time.
 */
import { fieldName, isMailboxLine, LINE_LENGTH_LIMIT } from '../mail/headers.ts'
import { MimeStructure } from './mime-structure.ts'

const LF = 0x0a
const SPACE = 0x20
const TAB = 0x09
const CRLF = Buffer.from('\r\n')
const NOTHING = Buffer.alloc(0)

/** Maximum octets of a body line that are examined at once; a longer line is examined in pieces (Postfix line_length_limit). */
const LINE_PIECE = 2048

/** Fields of MIME, which have checks of their own (Postfix header_opts.c). */
export const MIME_FIELD = /^(?:mime-version|content-(?:description|disposition|id|transfer-encoding|type)):/i

type FieldPlace = 'header' | 'part' | 'nested' | 'trace'

export type ContentUnit =
  /** A field with its lines, in the header of the message, of a body part, or of an attached message, or of this relay. */
  | { readonly kind: 'field'; readonly bytes: Buffer; readonly text: string; readonly place: FieldPlace }
  /** The empty line after the header of the message. */
  | { readonly kind: 'body' }
  /** A body line, or a piece of it. `offset` counts octets from the start of the body part. */
  | { readonly kind: 'line'; readonly bytes: Buffer; readonly text: string; readonly offset: number }

/** A line or a part of it. */
interface Line {
  readonly bytes: Buffer
  /** Octets without the line end. */
  readonly text: string
  readonly isStart: boolean
}

export class ContentUnits {
  readonly #fieldLimit: number
  readonly #mime = new MimeStructure()
  #state: Exclude<FieldPlace, 'trace'> | 'body' = 'header'
  #rest: Buffer = NOTHING
  /** False while a line is continued. */
  #atLineStart = true
  /** Lines of the current field; empty without one. */
  #field: Buffer[] = []
  #fieldText = ''
  #offset = 0
  /** True after the first field. Lines of an mbox file are recognized only before that field. */
  #sawField = false

  /** `fieldLimit` is header_size_limit, in octets. */
  constructor(fieldLimit: number) {
    this.#fieldLimit = Math.max(fieldLimit, LINE_LENGTH_LIMIT)
  }

  /** True when all that follows is body without further header fields. */
  get isPlainBody(): boolean {
    return this.#state === 'body' && !this.#mime.isNested
  }

  /** Octets of the current body part. */
  get offset(): number {
    return this.#offset
  }

  /** Reads the next bytes. The units must be taken before the next call. */
  *read(piece: Buffer): Generator<ContentUnit> {
    let bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece])
    while (bytes.length > 0) {
      const end = this.#endOfLine(bytes)
      if (end < 0) break
      const line = bytes.subarray(0, end)
      bytes = bytes.subarray(end)
      yield* this.#line(line)
    }
    // Copied, so that a few bytes do not keep a large buffer in memory.
    this.#rest = Buffer.from(bytes)
  }

  *end(): Generator<ContentUnit> {
    const last = this.#rest
    this.#rest = NOTHING
    if (last.length > 0) yield* this.#line(last)
    yield* this.#endField()
  }

  /** Takes the bytes that are kept, those of a field whose end is not known included, after which they are not examined. */
  takeRest(): Buffer {
    const rest = Buffer.concat([...this.#field, this.#rest])
    this.#field = []
    this.#rest = NOTHING
    return rest
  }

  /** End of the next line or of the piece of a line that is examined; -1 when more bytes are needed. */
  #endOfLine(bytes: Buffer): number {
    const newline = bytes.indexOf(LF)
    const least = Math.min(LINE_PIECE, this.#fieldLimit)
    if (newline < 0 && bytes.length <= least + 1) return -1
    if (newline >= 0 && newline <= least + 1) return newline + 1
    const limit = this.#isOfHeader(bytes.subarray(0, least)) ? this.#fieldLimit : LINE_PIECE
    if (newline >= 0 && newline <= limit + 1) return newline + 1
    return bytes.length > limit + 1 ? limit : -1
  }

  /** False for a line of a body, and for the line by which one begins without an empty line before it. */
  #isOfHeader(start: Buffer): boolean {
    if (this.#state === 'body') return false
    if (this.#continuesField(start) || fieldName(start, 0, start.length) !== undefined) return true
    return !this.#sawField && isMailboxLine(start, 0)
  }

  #continuesField(start: Buffer): boolean {
    return this.#field.length > 0 && (!this.#atLineStart || start[0] === SPACE || start[0] === TAB)
  }

  *#line(bytes: Buffer): Generator<ContentUnit> {
    const isEnd = bytes.at(-1) === LF
    const line: Line = { bytes, text: bytes.toString('latin1', 0, isEnd ? bytes.length - 2 : bytes.length), isStart: this.#atLineStart }
    const continues = this.#continuesField(bytes)
    this.#atLineStart = isEnd
    if (this.#state === 'body') yield this.#bodyLine(line)
    else if (continues) this.#continueField(line)
    else yield* this.#headerLine(line)
  }

  *#headerLine(line: Line): Generator<ContentUnit> {
    const { bytes, text } = line
    yield* this.#endField()
    if (!this.#sawField && isMailboxLine(bytes, 0)) return this.#beginField(bytes, `X-Mailbox-Line: ${text}`)
    const found = fieldName(bytes, 0, bytes.length)
    this.#sawField ||= found !== undefined
    if (found !== undefined) return this.#beginField(bytes, `${text.slice(0, found.name.length)}${text.slice(found.colon)}`)
    yield* this.#endHeader(line)
  }

  #beginField(bytes: Buffer, text: string): void {
    this.#field.push(bytes)
    this.#fieldText = text
  }

  /** Adds a line to the field. Lines after header_size_limit are removed, as the header editor would. */
  #continueField({ bytes, text, isStart }: Line): void {
    if (this.#fieldText.length >= this.#fieldLimit) {
      if (!isStart && bytes.at(-1) === LF && this.#field.at(-1)?.at(-1) !== LF) this.#field.push(CRLF)
      return
    }
    this.#field.push(bytes)
    this.#fieldText += isStart ? `\n${text}` : text
  }

  *#endField(): Generator<ContentUnit> {
    if (this.#field.length === 0) return
    const bytes = Buffer.concat(this.#field)
    const text = this.#fieldText.slice(0, this.#fieldLimit)
    this.#field = []
    this.#mime.field(text)
    yield { kind: 'field', bytes, text, place: this.#state === 'body' ? 'part' : this.#state }
  }

  /** Ends a header with an empty line, or with a line that is not a field. */
  *#endHeader(line: Line): Generator<ContentUnit> {
    const isPrimary = this.#state === 'header'
    this.#sawField = true
    const isEmpty = line.text === ''
    this.#state = isEmpty && this.#mime.endHeader() ? 'nested' : 'body'
    this.#offset = 0
    if (isPrimary) {
      yield { kind: 'body' }
      this.#offset = 1
    }
    if (!isPrimary || !isEmpty) yield this.#bodyLine(line)
  }

  #bodyLine({ bytes, text, isStart }: Line): ContentUnit {
    const boundary = isStart && this.#mime.isNested ? this.#mime.line(text) : 'other'
    if (boundary === 'begins') this.#state = 'part'
    if (boundary === 'ends') this.#offset = 0
    const offset = this.#offset
    this.#offset += text.length + 1
    return { kind: 'line', bytes, text, offset }
  }
}
