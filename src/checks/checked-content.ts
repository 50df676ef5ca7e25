/**
 * Examines a content by tables of actions, and passes on what the actions leave: by header_checks and body_checks while mail arrives
 * (Postfix cleanup(8)), by smtp_header_checks while mail is sent (Postfix smtp(8)).
 */
import { errorMessage } from '../system/caught-error.ts'
import { orcptOf, type EnvelopeRecipient } from '../mail/envelope.ts'
import { inTurn, type Change, type ContentEntry, type ContentStep, type Taken } from '../mail/content-step.ts'
import { isEnhancedStatus, type SmtpReply } from '../mail/smtp-reply.ts'
import type { Matching } from '../patterns/matching.ts'
import { parseAction, problemOf, redirectAddress, type Action, type Part, type ActionName } from './action.ts'
import type { CheckName, CheckTable } from './check-tables.ts'
import { ContentUnits, MIME_FIELD, type ContentUnit } from './content-units.ts'
import { fieldBytes, lineBytes } from './edited-text.ts'

/** The tables of one direction, with their limits. */
export interface ContentRules<C extends Change = Change> {
  readonly changes: C
  /** The table for a part of a content; undefined for a part that is not examined. */
  readonly tables: Pick<ReadonlyMap<Exclude<CheckName, 'smtp_header_checks'>, CheckTable>, 'get' | 'has'>
  readonly matching: Matching
  /** header_size_limit, in octets. */
  readonly fieldLimit: number
  /** body_checks_size_limit: octets of each body part that are examined; 0 for all. */
  readonly bodyLimit: number
}

/** Receives the actions, which are not part of the content. */
export interface CheckReport {
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
const CRLF = Buffer.from('\r\n')
const BODY_TABLES = ['mime_header_checks', 'nested_header_checks', 'body_checks'] as const

type Examined = Exclude<ContentUnit, { kind: 'body' }>

export class CheckedContent<C extends Change> implements ContentEntry {
  readonly verdict: Verdict = { ...NO_VERDICT }
  readonly #checks: ContentRules
  readonly #report: CheckReport
  readonly #next: ContentStep
  readonly #units: ContentUnits
  readonly #bodyTable: CheckTable | undefined
  /** Takes the Received field of this relay, and fields before it. */
  #trace: (bytes: Buffer) => void = () => undefined
  #hasBody = false
  /** False after an action that ends the checks. */
  #examines = true
  /** The examination of earlier bytes; undefined when it has ended. */
  #pending: Taken

  constructor(checks: ContentRules<NoInfer<C>>, report: CheckReport, next: ContentStep<C>) {
    this.#checks = checks
    this.#report = report
    this.#next = next
    this.#units = new ContentUnits(checks.fieldLimit)
    this.#bodyTable = checks.tables.get('body_checks')
  }

  /** Examines the Received field of this relay, which is not edited; `pass` takes what is left of it. Must be the first call. */
  trace(field: string, pass: (bytes: Buffer) => void): void {
    this.#trace = pass
    const text = field.replaceAll('\r\n', '\n').slice(0, -1)
    const unit: ContentUnit = { kind: 'field', bytes: Buffer.from(field), text, place: 'trace' }
    void this.#after(() => this.#process([unit].values()))
  }

  /** Examines the next bytes, with CRLF line ends. When a promise is returned, the caller should wait before the next call. */
  write(piece: Buffer): Taken {
    return this.#after(() => this.#write(piece))
  }

  end(): Taken {
    return this.#after(() => inTurn(this.#process(this.#units.end()), () => this.#next.end()))
  }

  #write(piece: Buffer): Taken {
    if (!this.#isOver) return this.#process(this.#units.read(piece))
    const rest = this.#units.takeRest()
    return inTurn(rest.length > 0 ? this.#next.body(rest) : undefined, () => this.#next.body(piece))
  }

  /** Does the work after that of earlier calls. */
  #after(work: () => Taken): Taken {
    const pending = this.#pending === undefined ? work() : this.#pending.then(work)
    this.#pending = pending
    void pending?.then(() => {
      if (this.#pending === pending) this.#pending = undefined
    })
    return pending
  }

  /** True when nothing is left to examine. */
  get #isOver(): boolean {
    const { bodyLimit, tables } = this.#checks
    if (!this.#hasBody) return false
    if (!this.#examines || BODY_TABLES.every((name) => !tables.has(name))) return true
    return this.#units.isPlainBody && (this.#bodyTable === undefined || (bodyLimit > 0 && this.#units.offset >= bodyLimit))
  }

  #process(units: Iterator<ContentUnit>): Taken {
    for (let next = units.next(); next.done !== true; next = units.next()) {
      const waits = this.#take(next.value)
      if (waits !== undefined) return waits.then(() => this.#process(units))
    }
    return undefined
  }

  #take(unit: ContentUnit): Taken {
    if (unit.kind === 'body') {
      this.#hasBody = true
      return this.#next.beginBody(CRLF)
    }
    const table = this.#tableFor(unit)
    return table === undefined ? this.#pass(unit, unit.bytes) : this.#examine(unit, table)
  }

  #examine(unit: Examined, table: CheckTable): Taken {
    let found: string | undefined | Promise<string | undefined>
    try {
      found = this.#checks.matching.run(table.lookUp(unit.text))
    } catch (error) {
      return this.#fail(error, table)
    }
    if (!(found instanceof Promise)) return this.#act(unit, table, found)
    return found.then(
      (late) => this.#act(unit, table, late),
      (error: unknown) => this.#fail(error, table),
    )
  }

  #tableFor(unit: Examined): CheckTable | undefined {
    if (!this.#examines) return undefined
    if (unit.kind === 'field') return this.#checks.tables.get(tableName(unit))
    const { bodyLimit } = this.#checks
    return bodyLimit === 0 || unit.offset < bodyLimit ? this.#bodyTable : undefined
  }

  /** Refuses a content that cannot be examined: for the time of a match, and for a failure of the library or its thread. */
  #fail(error: unknown, table: CheckTable): undefined {
    this.#report.warn(`${table.name}: ${errorMessage(error)}`)
    return this.#refuse(NOT_EXAMINED)
  }

  #act(unit: Examined, { name, part }: CheckTable, result: string | undefined): Taken {
    const action = result === undefined ? undefined : parseAction(result)
    const problem = action === undefined ? undefined : problemOf(action, part)
    if (result !== undefined && (action === undefined || problem !== undefined)) {
      this.#report.warn(`${name}: ${problem ?? `${JSON.stringify(result)} is no action`}; the rule has no effect`)
    }
    if (action === undefined || problem !== undefined) return this.#pass(unit, unit.bytes)
    if (this.#isLogged(action))
      this.#report.took(action.verb, part, unit.text, action.verb === 'reject' ? reasonOf(action.text) : action.text)
    return this.#perform(unit, action)
  }

  #isLogged({ verb }: Action): boolean {
    if (verb === 'hold') return !this.verdict.hold && !this.verdict.discard
    return verb !== 'dunno' && verb !== 'ignore'
  }

  #perform(unit: Examined, { verb, text }: Action): Taken {
    switch (verb) {
      case 'ignore':
      case 'strip':
        return undefined
      case 'replace':
        return this.#pass(unit, this.#textBytes(unit, text))
      case 'prepend':
        return inTurn(this.#insert(unit, text), () => this.#pass(unit, unit.bytes))
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
    return this.#pass(unit, unit.bytes)
  }

  #refuse(reply: SmtpReply): undefined {
    this.#examines = false
    this.#report.refuse(reply)
  }

  #textBytes(unit: Examined, text: string): Buffer {
    return unit.kind === 'field' ? fieldBytes(text) : lineBytes(text, unit.bytes.at(-1) !== 0x0a)
  }

  #insert(unit: Examined, text: string): Taken {
    if (unit.kind === 'line') return this.#next.body(lineBytes(text))
    if (unit.place !== 'header') return this.#pass(unit, fieldBytes(text))
    this.#next.insert(fieldBytes(text))
    return undefined
  }

  #pass(unit: Examined, bytes: Buffer): Taken {
    if (unit.kind === 'line' || unit.place === 'part' || unit.place === 'nested') return this.#next.body(bytes)
    if (unit.place === 'header') this.#next.header(bytes)
    else this.#trace(bytes)
    return undefined
  }
}

/** The parameter for a field (Postfix cleanup_header_callback). */
function tableName({ text, place }: Extract<ContentUnit, { kind: 'field' }>): Exclude<CheckName, 'smtp_header_checks'> {
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
