/** Examines content while it arrives by header_checks and body_checks (Postfix cleanup(8)), and passes on what the actions leave. */
import { errorMessage } from '../system/caught-error.ts'
import { orcptOf, type EnvelopeRecipient } from '../mail/envelope.ts'
import { isEnhancedStatus, type SmtpReply } from '../mail/smtp-reply.ts'
import type { Matching } from '../patterns/matching.ts'
import { parseAction, problemOf, redirectAddress, type Action, type Part, type ActionName } from './action.ts'
import type { CheckName, CheckTable, CheckTables } from './check-tables.ts'
import { ContentUnits, MIME_FIELD, type ContentUnit } from './content-units.ts'
import { fieldBytes, lineBytes } from './edited-text.ts'

export interface ArrivalChecks {
  readonly tables: CheckTables
  readonly matching: Matching
  /** header_size_limit, in octets. */
  readonly fieldLimit: number
  /** body_checks_size_limit: octets of each body part that are examined; 0 for all. */
  readonly bodyLimit: number
}

/** Takes the content that passed the checks. */
export interface CheckedSink {
  /** A field of the header of the message, which is still to be edited. */
  header(bytes: Buffer): void
  /** A field that an action has added. It is not edited. */
  insert(bytes: Buffer): void
  /** The Received field of this relay, and fields before it. They are not edited. */
  trace(bytes: Buffer): void
  /** Ends the header, with an empty line. */
  beginBody(): void
  body(bytes: Buffer): void
  refuse(reply: SmtpReply): void
  /** Records an action: the part with its text, one character per octet, and the text of the action. */
  took(verb: ActionName, part: Part, octets: string, text: string): void
  warn(text: string): void
}

/** Actions that concern the whole message. */
export interface Verdict {
  hold: boolean
  discard: boolean
  /** Address that replaces all recipients. */
  redirect: string | undefined
}

export const NO_VERDICT: Readonly<Verdict> = { hold: false, discard: false, redirect: undefined }

/** The recipient that replaces all others. It keeps the DSN parameters of the first (Postfix qmgr_message_resolve). */
export function redirected([first]: readonly EnvelopeRecipient[], address: string): readonly EnvelopeRecipient[] {
  return first === undefined ? [] : [{ address, notify: first.notify, orcpt: first.orcpt ?? orcptOf(first.address) }]
}

const NOT_EXAMINED: SmtpReply = { code: 451, status: '4.3.0', text: 'Error: message content cannot be examined' }

type Examined = Exclude<ContentUnit, { kind: 'body' }>

export class CheckedContent {
  readonly verdict: Verdict = { ...NO_VERDICT }
  readonly #checks: ArrivalChecks
  readonly #sink: CheckedSink
  readonly #units: ContentUnits
  readonly #bodyTable: CheckTable | undefined
  /** False after an action that ends the checks. */
  #examines = true
  /** The examination of earlier bytes; undefined when it has ended. */
  #pending: Promise<void> | undefined

  constructor(checks: ArrivalChecks, sink: CheckedSink) {
    this.#checks = checks
    this.#sink = sink
    this.#units = new ContentUnits(checks.fieldLimit)
    this.#bodyTable = checks.tables.get('body_checks')
  }

  /** Examines the Received field of this relay, which is not edited. Must be the first call. */
  trace(field: string): void {
    const text = field.replaceAll('\r\n', '\n').slice(0, -1)
    const unit: ContentUnit = { kind: 'field', bytes: Buffer.from(field), text, place: 'trace' }
    void this.#after(() => this.#process([unit].values()))
  }

  /** Examines the next bytes, with CRLF line ends. When a promise is returned, the caller should wait before the next call. */
  write(piece: Buffer): Promise<void> | undefined {
    return this.#after(() => this.#write(piece))
  }

  end(): Promise<void> | undefined {
    return this.#after(() => this.#process(this.#units.end()))
  }

  #write(piece: Buffer): Promise<void> | undefined {
    if (!this.#isOver) return this.#process(this.#units.read(piece))
    const rest = this.#units.takeRest()
    if (rest.length > 0) this.#sink.body(rest)
    this.#sink.body(piece)
    return undefined
  }

  /** Does the work after that of earlier calls. */
  #after(work: () => Promise<void> | undefined): Promise<void> | undefined {
    const pending = this.#pending === undefined ? work() : this.#pending.then(work)
    this.#pending = pending
    void pending?.then(() => {
      if (this.#pending === pending) this.#pending = undefined
    })
    return pending
  }

  /** True when nothing is left to examine. */
  get #isOver(): boolean {
    const { bodyLimit } = this.#checks
    if (!this.#units.isPlainBody) return false
    return !this.#examines || this.#bodyTable === undefined || (bodyLimit > 0 && this.#units.offset >= bodyLimit)
  }

  #process(units: Iterator<ContentUnit>): Promise<void> | undefined {
    for (let next = units.next(); next.done !== true; next = units.next()) {
      const waits = this.#take(next.value)
      if (waits !== undefined) return waits.then(() => this.#process(units))
    }
    return undefined
  }

  #take(unit: ContentUnit): Promise<void> | undefined {
    const table = unit.kind === 'body' ? undefined : this.#tableFor(unit)
    if (unit.kind === 'body') this.#sink.beginBody()
    else if (table === undefined) this.#pass(unit, unit.bytes)
    else return this.#examine(unit, table)
    return undefined
  }

  #examine(unit: Examined, table: CheckTable): Promise<void> | undefined {
    try {
      const found = this.#checks.matching.run(table.lookUp(unit.text))
      if (found instanceof Promise) {
        return found.then(
          (late) => this.#act(unit, table, late),
          (error: unknown) => this.#fail(error, table),
        )
      }
      this.#act(unit, table, found)
    } catch (error) {
      this.#fail(error, table)
    }
    return undefined
  }

  #tableFor(unit: Examined): CheckTable | undefined {
    if (!this.#examines) return undefined
    if (unit.kind === 'field') return this.#checks.tables.get(tableName(unit))
    const { bodyLimit } = this.#checks
    return bodyLimit === 0 || unit.offset < bodyLimit ? this.#bodyTable : undefined
  }

  /** Refuses a content that cannot be examined: for the time of a match, and for a failure of the library or its thread. */
  #fail(error: unknown, table: CheckTable): void {
    this.#sink.warn(`${table.name}: ${errorMessage(error)}`)
    this.#refuse(NOT_EXAMINED)
  }

  #act(unit: Examined, { name, part }: CheckTable, result: string | undefined): void {
    const action = result === undefined ? undefined : parseAction(result)
    const problem = action === undefined ? undefined : problemOf(action, part)
    if (result !== undefined && (action === undefined || problem !== undefined)) {
      this.#sink.warn(`${name}: ${problem ?? `${JSON.stringify(result)} is no action`}; the rule has no effect`)
    }
    if (action === undefined || problem !== undefined) return this.#pass(unit, unit.bytes)
    if (this.#isLogged(action))
      this.#sink.took(action.verb, part, unit.text, action.verb === 'reject' ? reasonOf(action.text) : action.text)
    this.#perform(unit, action)
  }

  #isLogged({ verb }: Action): boolean {
    if (verb === 'hold') return !this.verdict.hold && !this.verdict.discard
    return verb !== 'dunno' && verb !== 'ignore'
  }

  #perform(unit: Examined, { verb, text }: Action): void {
    switch (verb) {
      case 'ignore':
      case 'strip':
        return undefined
      case 'replace':
        return this.#pass(unit, this.#textBytes(unit, text))
      case 'prepend':
        this.#insert(unit, text)
        break
      case 'reject':
        return this.#refuse(refusalOf(text))
      case 'discard':
        this.verdict.discard = true
        this.#examines = false
        break
      case 'redirect':
        this.verdict.redirect = redirectAddress(text)
        this.#examines = false
        break
      case 'pass':
        this.#examines = false
        break
      case 'hold':
        this.verdict.hold = true
        break
      case 'dunno':
      case 'warn':
      case 'info':
        break
    }
    this.#pass(unit, unit.bytes)
  }

  #refuse(reply: SmtpReply): void {
    this.#examines = false
    this.#sink.refuse(reply)
  }

  #textBytes(unit: Examined, text: string): Buffer {
    return unit.kind === 'field' ? fieldBytes(text) : lineBytes(text, unit.bytes.at(-1) !== 0x0a)
  }

  #insert(unit: Examined, text: string): void {
    if (unit.kind === 'line') this.#sink.body(lineBytes(text))
    else if (unit.place === 'header') this.#sink.insert(fieldBytes(text))
    else this.#pass(unit, fieldBytes(text))
  }

  #pass(unit: Examined, bytes: Buffer): void {
    if (unit.kind === 'line' || unit.place === 'part' || unit.place === 'nested') this.#sink.body(bytes)
    else this.#sink[unit.place](bytes)
  }
}

/** The parameter for a field (Postfix cleanup_header_callback). */
function tableName({ text, place }: Extract<ContentUnit, { kind: 'field' }>): CheckName {
  if (place === 'part' || MIME_FIELD.test(text)) return 'mime_header_checks'
  return place === 'nested' ? 'nested_header_checks' : 'header_checks'
}

/** Text of REJECT without one (Postfix cleanup_strerror). */
const REJECTED = 'message content rejected'

/** The text of a refusal with its status, 5.7.1 when it has none. */
function reasonOf(text: string): string {
  if (text === '') return `5.7.1 ${REJECTED}`
  const [status = ''] = /^\S+/.exec(text) ?? []
  return isEnhancedStatus(status) ? text : `5.7.1 ${text}`
}

function refusalOf(text: string): SmtpReply {
  const [, status = '', rest = ''] = /^(\S+)\s*([^]*)$/.exec(reasonOf(text)) ?? []
  return { code: status.startsWith('4') ? 451 : 550, status, text: Buffer.from(rest, 'latin1').toString() }
}
