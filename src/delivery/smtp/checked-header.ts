/**
 * Applies smtp_header_checks to a header while the content is read for a next hop (Postfix smtp(8)). The queued message stays unchanged.
 */
import { parseAction, problemOf, type ActionName } from '../../checks/action.ts'
import type { CheckTable } from '../../checks/check-tables.ts'
import { ContentUnits, MIME_FIELD, type ContentUnit } from '../../checks/content-units.ts'
import { fieldBytes } from '../../checks/edited-text.ts'
import { errorMessage } from '../../system/caught-error.ts'
import type { Matching } from '../../patterns/matching.ts'
import type { ContentRead, ContentSource } from './message-content.ts'

/** smtp_header_checks of a configuration. */
export interface HeaderChecks {
  readonly table: CheckTable
  readonly matching: Matching
  /** header_size_limit, in octets. */
  readonly fieldLimit: number
  /** Records an action: the field, one character per octet, and the text of the action. */
  readonly took: (queueId: string, verb: ActionName, octets: string, text: string) => void
  readonly warn: (text: string) => void
}

const CRLF = Buffer.from('\r\n')
const CHANGES: ReadonlySet<ActionName> = new Set<ActionName>(['ignore', 'strip', 'prepend', 'replace'])

export class CheckedHeader implements ContentSource {
  readonly #content: ContentSource
  readonly #checks: HeaderChecks
  readonly #queueId: string
  /** Reads the header; null after its end. */
  #units: ContentUnits | null
  #pieces: Buffer[] = []
  #isChanged = false

  constructor(content: ContentSource, checks: HeaderChecks, queueId: string) {
    this.#content = content
    this.#checks = checks
    this.#queueId = queueId
    this.#units = new ContentUnits(checks.fieldLimit)
  }

  /** True when an action has changed the header that was read. */
  get isChanged(): boolean {
    return this.#isChanged
  }

  async next(): Promise<ContentRead> {
    for (;;) {
      const read = await this.#content.next()
      if (this.#units === null || read.kind === 'unreadable') return read
      try {
        await this.#read(this.#units, read)
      } catch (error) {
        return { kind: 'unreadable', why: `${this.#checks.table.name}: ${errorMessage(error)}`, lasting: false }
      }
      const bytes = Buffer.concat(this.#pieces.splice(0))
      if (bytes.length > 0 || read.last) return { ...read, bytes }
    }
  }

  async #read(units: ContentUnits, { bytes, last }: Extract<ContentRead, { kind: 'chunk' }>): Promise<void> {
    const piece = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (const unit of units.read(piece)) await this.#take(unit)
    if (last) for (const unit of units.end()) await this.#take(unit)
    if (this.#units !== null) return
    // A line that is read in pieces is not complete at the end of a chunk.
    const rest = units.takeRest()
    if (rest.length > 0) this.#pieces.push(Buffer.from(rest))
  }

  async #take(unit: ContentUnit): Promise<void> {
    if (unit.kind === 'body') {
      this.#units = null
      this.#pieces.push(CRLF)
    } else if (unit.kind === 'line' || unit.place === 'part' || unit.place === 'nested' || MIME_FIELD.test(unit.text))
      this.#pieces.push(Buffer.from(unit.bytes))
    else await this.#check(unit)
  }

  async #check({ bytes, text: field }: Extract<ContentUnit, { kind: 'field' }>): Promise<void> {
    const { table, matching, took, warn } = this.#checks
    const result = await matching.run(table.lookUp(field))
    const action = result === undefined ? undefined : parseAction(result)
    const problem = action === undefined ? undefined : problemOf(action, 'header')
    if (problem !== undefined) warn(`${table.name}: ${problem}; the rule has no effect`)
    // Copied, because the next chunk invalidates this one.
    const unchanged = (): unknown => this.#pieces.push(Buffer.from(bytes))
    if (action === undefined || problem !== undefined) return void unchanged()
    const { verb, text } = action
    if (verb !== 'dunno' && verb !== 'ignore') took(this.#queueId, verb, field, text)
    this.#isChanged ||= CHANGES.has(verb)
    if (verb === 'ignore' || verb === 'strip') return
    if (verb === 'prepend' || verb === 'replace') this.#pieces.push(fieldBytes(text))
    if (verb !== 'replace') unchanged()
  }
}
