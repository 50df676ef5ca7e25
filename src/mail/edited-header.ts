/** The step that edits the header of a content; see HeaderEditor. */
import type { Change, ContentEntry, ContentStep, Taken } from './content-step.ts'
import { inTurn } from './content-step.ts'
import { HeaderEditor, type BodyStart, type HeaderRules } from './header-editor.ts'

const CRLF = Buffer.from('\r\n')
const NOTHING = Buffer.alloc(0)

/** The fields of a header that were read so far. */
export type ReadFields = Pick<HeaderEditor, 'names' | 'hops' | 'messageId' | 'subject' | 'from' | 'asked' | 'read'>

export class EditedHeader<C extends Change> implements ContentEntry, ContentStep<C> {
  readonly permits: C
  readonly #next: ContentStep
  readonly #additions: (fields: ReadFields) => string
  readonly #editor: HeaderEditor
  #hasEnded = false

  /** `additions` returns fields to add at the end of the header, with their line ends. */
  constructor(rules: HeaderRules, next: ContentStep<C>, additions: (fields: ReadFields) => string = () => '') {
    this.permits = next.permits
    this.#next = next
    this.#additions = additions
    this.#editor = new HeaderEditor(rules, (piece) => next.header(piece))
  }

  get fields(): ReadFields {
    return this.#editor
  }

  /** Takes bytes of the header, or of the body after it. */
  write(bytes: Buffer): Taken {
    if (this.#hasEnded) return this.#next.body(bytes)
    const start = this.#editor.write(bytes)
    return start === undefined ? undefined : this.#begin(start)
  }

  header(bytes: Buffer): void {
    void this.write(bytes)
  }

  insert(field: Buffer): void {
    if (!this.#hasEnded) this.#editor.insert(field)
  }

  beginBody(line: Buffer): Taken {
    if (this.#hasEnded) return undefined
    const { rest } = this.#editor.end()
    return this.#begin({ rest: Buffer.concat([line, rest]), separated: line.length > 0 })
  }

  body(bytes: Buffer): Taken {
    return this.#next.body(bytes)
  }

  end(): Taken {
    return inTurn(this.#hasEnded ? undefined : this.#begin(this.#editor.end()), () => this.#next.end())
  }

  #begin({ rest, separated }: BodyStart): Taken {
    this.#hasEnded = true
    const additions = this.#additions(this.#editor)
    if (additions !== '') this.#next.header(Buffer.from(additions))
    const added = rest.length === 0 ? NOTHING : CRLF
    const [line, body] = separated ? [rest.subarray(0, CRLF.length), rest.subarray(CRLF.length)] : [added, rest]
    return inTurn(this.#next.beginBody(line), () => (body.length === 0 ? undefined : this.#next.body(body)))
  }
}
