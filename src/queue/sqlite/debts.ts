/**
 * Debts: words that MAILER-DAEMON owes to senders. They are written with the outcome that causes them and paid in the
 * transaction that queues the notice, so that no notice is lost or sent twice.
 */
import type { Database } from 'better-sqlite3'
import type { Instant } from '../../mail/clock.ts'
import { messageOf, recipientId, type Debt, type MessageId, type RecipientId } from '../message.ts'
import type { IndebtedMessage, Report } from '../store.ts'
import type { Corrupt } from './corrupt.ts'
import type { Departures } from './departed.ts'
import type { Intake } from './intake.ts'
import * as sql from './queries.ts'
import { toMessage, toRecipient, type MessageRow, type RecipientRow } from './rows.ts'

export interface DebtParts {
  readonly corrupt: Corrupt
  readonly departures: Departures
  readonly intake: Intake
}

export class Debts {
  readonly #message
  readonly #next
  readonly #indebted
  readonly #live
  readonly #keepers
  readonly #warnings
  readonly #setWarnAt
  readonly #setWarnings
  readonly #oweDelay
  readonly #debt
  readonly #pay
  readonly #parts: DebtParts

  constructor(db: Database, parts: DebtParts) {
    this.#parts = parts
    this.#message = db.prepare<[MessageId], MessageRow>(sql.messageById)
    this.#next = db.prepare<{ from: RecipientId }, RecipientId>(sql.nextIndebted).pluck()
    this.#indebted = db.prepare<{ message: MessageId }, RecipientRow>(sql.indebtedRecipientsOf)
    this.#live = db.prepare<{ message: MessageId }, RecipientRow>(sql.liveRecipientsOf)
    this.#keepers = db.prepare<{ message: MessageId; most: number }, number>(sql.countKeepers).pluck()
    this.#warnings = db.prepare<{ now: Instant; limit: number }, MessageRow>(sql.dueWarnings)
    this.#setWarnAt = db.prepare<[Instant | null, MessageId, Instant | null]>(sql.setWarnAt)
    this.#setWarnings = db.prepare<[number, Instant | null, MessageId]>(sql.setWarnings)
    this.#oweDelay = db.prepare<[RecipientId]>(sql.oweDelay)
    this.#debt = db.prepare<[RecipientId], { debt: Debt | null; isLive: 0 | 1 }>(sql.debtOf)
    this.#pay = db.prepare<[RecipientId, Debt]>(sql.payDebt)
  }

  /** One seek per message, however many recipients each has. */
  indebted(after: MessageId, limit: number): IndebtedMessage[] {
    const found: IndebtedMessage[] = []
    let from = recipientId(after + 1, 0)
    for (let next = this.#next.get({ from }); next !== undefined && found.length < limit; next = this.#next.get({ from })) {
      const message = messageOf(next)
      const one = this.debtsOf(message)
      if (one !== undefined) found.push(one)
      from = recipientId(message + 1, 0)
    }
    return found
  }

  debtsOf(message: MessageId): IndebtedMessage | undefined {
    const indebted = this.#indebted.all({ message })
    const row = this.#message.get(message)
    if (indebted.length === 0 || row === undefined) return undefined
    return this.#told(row, indebted.some(({ debt }) => debt === 'delay') ? this.#withLive(message, indebted) : indebted)
  }

  claimWarnings(now: Instant, limit: number): IndebtedMessage[] {
    const found: IndebtedMessage[] = []
    for (const row of this.#warnings.all({ now, limit })) {
      const recipients = this.#live.all({ message: row.id })
      const one = recipients.length === 0 ? undefined : this.#told(row, recipients)
      if (one !== undefined) found.push(one)
      else this.postponeWarning(row.id, null)
    }
    return found
  }

  postponeWarning(message: MessageId, warnAt: Instant | null): void {
    this.#setWarnAt.run(warnAt, message, warnAt)
  }

  oweDelay(message: MessageId, recipients: readonly RecipientId[]): void {
    for (const id of recipients) if (messageOf(id) === message) this.#oweDelay.run(id)
  }

  report(report: Report): { readonly removed: boolean; readonly entered: boolean } {
    const { message, paid, notices, warnings, warnAt } = report
    const row = this.#message.get(message)
    if (row === undefined || !this.#isTrue(report, row)) return { removed: false, entered: false }
    for (const { recipient, debt } of paid) this.#pay.run(recipient, debt)
    for (const notice of notices) this.#parts.intake.enqueue(notice)
    if (this.#keepers.get({ message, most: 1 }) === 0) {
      this.#parts.departures.depart({ ...row, warnings })
      return { removed: true, entered: true }
    }
    this.#setWarnings.run(warnings, warnAt, message)
    return { removed: false, entered: true }
  }

  /** While the notices were written, what they say may have been told by others, or have changed. */
  #isTrue({ message, paid, late, warnings }: Report, row: MessageRow): boolean {
    if (paid.length === 0 && warnings <= row.warnings) return false
    return (
      paid.every(({ recipient, debt }) => messageOf(recipient) === message && this.#debt.get(recipient)?.debt === debt) &&
      late.every((recipient) => this.#debt.get(recipient)?.isLive === 1)
    )
  }

  /** A warning names all that are late. */
  #withLive(message: MessageId, indebted: readonly RecipientRow[]): readonly RecipientRow[] {
    const settled = indebted.filter(({ settled_at: at }) => at !== null)
    return [...settled, ...this.#live.all({ message })].toSorted((a, b) => a.id - b.id)
  }

  #told(row: MessageRow, recipients: readonly RecipientRow[]): IndebtedMessage | undefined {
    const message = this.#parts.corrupt.unless(row.id, () => toMessage(row))
    return message === undefined ? undefined : { message, warnings: row.warnings, recipients: recipients.map(toRecipient) }
  }
}
