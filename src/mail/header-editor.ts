/**
 * Edits the header of a message while it arrives (Postfix cleanup): removes fields, removes blanks before the colon, cuts a
 * field at header_size_limit, completes the addresses of local mail. Holds one field at a time.
 */
import { fieldName, isMailboxLine, LINE_LENGTH_LIMIT } from './headers.ts'
import { rewriteField, roleOf, type AddressRole, type Completion } from './header-addresses.ts'

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const TAB = 0x09
const NOTHING = Buffer.alloc(0)
const MAILBOX_LINE = Buffer.from('X-Mailbox-Line: ')

export interface HeaderRules {
  /** Lower-case names of the fields to remove. */
  readonly dropped: ReadonlySet<string>
  /** Maximum octets of a field; the rest of a longer field is removed. */
  readonly fieldLimit: number
  /** Completes addresses; null to leave them. */
  readonly completion: Completion | null
  /** Whether Subject and From are read. */
  readonly readsTexts: boolean
  /** Lower-case name of a field by which the client asks for something: it is read and removed. */
  readonly request?: string | undefined
  /** Lower-case names of other fields whose values are read. */
  readonly read?: ReadonlySet<string> | undefined
}

/** The body, which begins after the header. */
export interface BodyStart {
  readonly rest: Buffer
  /** True when an empty line ended the header. `rest` begins with this line. */
  readonly separated: boolean
}

export class HeaderEditor {
  /** Lower-case names of the fields, removed ones included. */
  readonly names = new Set<string>()
  /** Number of Received fields. */
  hops = 0
  /** Unfolded value of the first Message-ID field. */
  messageId: string | undefined
  /** Unfolded values of the first Subject and From fields, as they are passed on; undefined unless they are read. */
  subject: string | undefined
  from: string | undefined
  /** Unfolded value of the first field `request`. */
  asked: string | undefined
  /** Unfolded values of the first fields of `read`, by name. */
  readonly read = new Map<string, string>()
  readonly #rules: HeaderRules
  readonly #take: (piece: Buffer) => void
  #bytes: Buffer = NOTHING
  /** Start of the current field in #bytes. */
  #start = 0
  /** Start of the line that is read next. */
  #line = 0
  /** Start of the bytes that are unchanged and not passed on. */
  #kept = 0
  /** Offset of the colon of the current field, from its start; -1 before the first field and in a line of an mbox file. */
  #colon = -1
  /** Lower-case name of the current field. */
  #name = ''
  /** Start of the lines that are removed from the current field, because the field is too long; -1 when there are none. */
  #cutAt = -1
  /** True after the first field. Lines of an mbox file are recognized only before that field. */
  #sawField = false

  /** `take` receives the edited header. */
  constructor(rules: HeaderRules, take: (piece: Buffer) => void) {
    this.#rules = rules
    this.#take = take
  }

  /** Reads the next bytes, with CRLF line ends. Returns the start of the body when the header has ended. */
  write(piece: Buffer): BodyStart | undefined {
    this.#bytes = this.#bytes.length === 0 ? piece : Buffer.concat([this.#bytes, piece])
    for (;;) {
      const newline = this.#bytes.indexOf(LF, this.#line)
      if (newline < 0) return this.#growingLine()
      const body = this.#readLine(newline + 1)
      if (body !== undefined) return body
    }
  }

  /** Passes on a field that is not edited, after the complete fields before it. */
  insert(field: Buffer): void {
    this.#endField(this.#bytes.length)
    this.#pass(this.#bytes.length, 0)
    this.#bytes = NOTHING
    this.#start = 0
    this.#line = 0
    this.#colon = -1
    this.#cutAt = -1
    this.#take(field)
  }

  /** Ends a content whose header has not ended yet. Returns the body, which is empty unless the last line is not a field. */
  end(): BodyStart {
    const body = this.#line < this.#bytes.length ? this.#readLine(this.#bytes.length) : undefined
    if (body !== undefined) return body
    this.#endField(this.#bytes.length)
    this.#pass(this.#bytes.length, this.#bytes.length)
    return { rest: NOTHING, separated: false }
  }

  #readLine(end: number): BodyStart | undefined {
    const start = this.#line
    const first = this.#bytes[start]
    if (first === LF || (first === CR && this.#bytes[start + 1] === LF)) return this.#endHeader(start, true)
    if ((first === SPACE || first === TAB) && this.names.size > 0) {
      this.#line = end
      if (this.#cutAt < 0 && end - this.#start > this.#rules.fieldLimit) this.#cutAt = start
      return undefined
    }
    this.#endField(start)
    this.#start = start
    this.#line = end
    this.#cutAt = -1
    return this.#beginField(start, end) ? undefined : this.#endHeader(start, false)
  }

  /** Reads the name of the field at `start`. Returns false when no field begins there. */
  #beginField(start: number, end: number): boolean {
    if (!this.#sawField && isMailboxLine(this.#bytes, start)) {
      this.#pass(start, start)
      this.#take(MAILBOX_LINE)
      this.#colon = -1
      this.names.add('x-mailbox-line')
      return true
    }
    const found = fieldName(this.#bytes, start, end)
    if (found === undefined) return false
    this.#sawField = true
    this.#colon = found.colon - start
    this.#name = found.name
    this.names.add(found.name)
    if (found.name === 'received') this.hops++
    return true
  }

  /** Handles the start of a line whose end has not been received, and keeps the bytes that are still needed. */
  #growingLine(): BodyStart | undefined {
    if (this.#bytes.length - this.#line > LINE_LENGTH_LIMIT && !this.#mayBeField()) {
      this.#endField(this.#line)
      return this.#endHeader(this.#line, false)
    }
    this.#pass(this.#start, this.#start)
    const lineLimit = Math.max(this.#rules.fieldLimit, LINE_LENGTH_LIMIT) + 1
    const field = this.#bytes.subarray(this.#start, this.#cutAt < 0 ? this.#line : this.#cutAt)
    const line = this.#bytes.subarray(this.#line)
    // Of a line that is too long, the beginning is kept, and the last octet, which may be the CR of the line end.
    const pieces = line.length > lineLimit + 1 ? [field, line.subarray(0, lineLimit), line.subarray(-1)] : [field, line]
    this.#bytes = Buffer.concat(pieces)
    if (this.#cutAt >= 0) this.#cutAt = field.length
    this.#line = field.length
    this.#kept = 0
    this.#start = 0
    return undefined
  }

  /** True when the line whose end has not been received continues a field, or begins one. */
  #mayBeField(): boolean {
    const first = this.#bytes[this.#line]
    if ((first === SPACE || first === TAB) && this.names.size > 0) return true
    if (!this.#sawField && isMailboxLine(this.#bytes, this.#line)) return true
    return fieldName(this.#bytes, this.#line, this.#bytes.length) !== undefined
  }

  /** Passes on the current field, which ends at `end`. */
  #endField(end: number): void {
    if (end <= this.#start || this.#colon < 0 || this.#isKept(end)) return
    const field = this.#bytes.toString('latin1', this.#start, this.#cutAt < 0 ? end : this.#cutAt)
    const name = field.slice(0, this.#colon).trimEnd()
    const key = name.toLowerCase()
    const value = field.slice(this.#colon + 1)
    if (key === this.#rules.request) this.asked ??= unfolded(value)
    if (this.#rules.read?.has(key) === true && !this.read.has(key)) this.read.set(key, unfolded(value))
    if (key === this.#rules.request || this.#rules.dropped.has(key)) return this.#pass(this.#start, end)
    if (key === 'message-id') this.messageId ??= unfolded(value)
    const edited = this.#edited(name, value, roleOf(key))
    if (this.#rules.readsTexts) this.#readText(key, edited.slice(name.length + 1))
    if (edited === field && this.#cutAt < 0) return
    this.#pass(this.#start, end)
    this.#take(Buffer.from(edited, 'latin1'))
  }

  /** True for a field that stays as it is, whatever its value, as most do. Spares the copy of its text. */
  #isKept(end: number): boolean {
    const { dropped, fieldLimit } = this.#rules
    const name = this.#name
    const hasBlanks = this.#colon !== name.length
    const isWhole = this.#cutAt < 0 && end - this.#start <= fieldLimit && this.#bytes[end - 1] === LF && this.#bytes[end - 2] === CR
    const isRead =
      name === 'message-id' ||
      name === this.#rules.request ||
      (name === 'subject' && this.#rules.readsTexts) ||
      this.#rules.read?.has(name) === true
    return isWhole && !hasBlanks && !dropped.has(name) && !isRead && roleOf(name) === undefined
  }

  #readText(key: string, value: string): void {
    if (key === 'subject') this.subject ??= unfolded(value)
    else if (key === 'from') this.from ??= unfolded(value)
  }

  #edited(name: string, value: string, role: AddressRole | undefined): string {
    const { completion, fieldLimit } = this.#rules
    const completed = completion !== null && role !== undefined ? rewriteField({ name, value, role }, completion) : null
    const text = completed ?? `${name}:${value.replace(/\r?\n$/, '')}`
    return `${text.length > fieldLimit ? text.slice(0, fieldLimit) : text}\r\n`
  }

  #endHeader(at: number, separated: boolean): BodyStart {
    if (separated) this.#endField(at)
    this.#pass(at, at)
    return { rest: this.#bytes.subarray(at), separated }
  }

  /** Passes on the unchanged bytes before `until`, and continues at `next`. */
  #pass(until: number, next: number): void {
    if (until > this.#kept) this.#take(this.#bytes.subarray(this.#kept, until))
    this.#kept = next
  }
}

const unfolded = (value: string): string => Buffer.from(value, 'latin1').toString('utf8').replace(/\s+/g, ' ').trim()
