/**
 * Due notices. A recipient is marked with the outcome that requires a DSN (RFC 3461). The transaction that queues the DSN clears
 * the mark, so that no notice is lost or sent twice.
 */
import type { Database } from 'better-sqlite3'
import type { QueueTime } from '../../../system/clock.ts'
import { messageOf, recipientId, type NoticeDue, type MessageId, type RecipientId } from '../../../mail/message.ts'
import type { MessageWithNoticesDue, Report } from '../../recorded-outcomes.ts'
import type { Corrupt } from './quarantine.ts'
import { NO_OUTCOMES, type HistoryWriter } from './history.ts'
import type { Intake } from './enqueue.ts'
import type { EventRows } from '../outbox/event-rows.ts'
import * as sql from './queries.ts'
import { assertSound, toMessage, toRecipient, type MessageRow, type RecipientRow } from './rows.ts'

interface NoticesDueDeps {
  readonly corrupt: Corrupt
  readonly departures: HistoryWriter
  readonly intake: Intake
  readonly events: EventRows
}

export class NoticesDue {
  readonly #message
  readonly #next
  readonly #recipientsDue
  readonly #live
  readonly #keepers
  readonly #warnings
  readonly #setWarnAt
  readonly #setWarnings
  readonly #markDelayNoticeDue
  readonly #noticeDue
  readonly #pay
  readonly #deps: NoticesDueDeps

  constructor(db: Database, deps: NoticesDueDeps) {
    this.#deps = deps
    this.#message = db.prepare<[MessageId], MessageRow>(sql.messageById)
    this.#next = db.prepare<{ from: RecipientId }, RecipientId>(sql.nextNoticeDue).pluck()
    this.#recipientsDue = db.prepare<{ message: MessageId }, RecipientRow>(sql.recipientsWithNoticesDue)
    this.#live = db.prepare<{ message: MessageId }, RecipientRow>(sql.liveRecipientsOf)
    this.#keepers = db.prepare<{ message: MessageId; most: number }, number>(sql.countKeepers).pluck()
    this.#warnings = db.prepare<{ now: QueueTime; limit: number }, MessageRow>(sql.dueWarnings)
    this.#setWarnAt = db.prepare<[QueueTime | null, MessageId, QueueTime | null]>(sql.setWarnAt)
    this.#setWarnings = db.prepare<[number, QueueTime | null, MessageId]>(sql.setWarnings)
    this.#markDelayNoticeDue = db.prepare<[RecipientId]>(sql.markDelayNoticeDue)
    this.#noticeDue = db.prepare<[RecipientId], { noticeDue: NoticeDue | null; isLive: 0 | 1 }>(sql.noticeDueOf)
    this.#pay = db.prepare<[RecipientId, NoticeDue]>(sql.clearNoticeDue)
  }

  /**
   * Messages with due notices, ordered by id. Finds each message by one index seek, then reads only its recipients with a notice
   * due and, for a delay warning, its live recipients.
   */
  messagesWithNoticesDue(after: MessageId, limit: number): MessageWithNoticesDue[] {
    const found: MessageWithNoticesDue[] = []
    let from = recipientId(after + 1, 0)
    for (let next = this.#next.get({ from }); next !== undefined && found.length < limit; next = this.#next.get({ from })) {
      const message = messageOf(next)
      const one = this.noticesDueOf(message)
      if (one !== undefined) found.push(one)
      from = recipientId(message + 1, 0)
    }
    return found
  }

  noticesDueOf(message: MessageId): MessageWithNoticesDue | undefined {
    const due = this.#recipientsDue.all({ message })
    const row = this.#message.get(message)
    if (due.length === 0 || row === undefined) return undefined
    return this.#toEntry(row, due.some(({ notice_due: kind }) => kind === 'delay') ? this.#withLive(message, due) : due)
  }

  claimWarnings(now: QueueTime, limit: number): MessageWithNoticesDue[] {
    this.#deps.events.passed(now)
    const found: MessageWithNoticesDue[] = []
    for (const row of this.#warnings.all({ now, limit })) {
      const recipients = this.#live.all({ message: row.id })
      const one = recipients.length === 0 ? undefined : this.#toEntry(row, recipients)
      if (one !== undefined) found.push(one)
      else this.postponeWarning(row.id, null)
    }
    return found
  }

  postponeWarning(message: MessageId, warnAt: QueueTime | null): void {
    this.#setWarnAt.run(warnAt, message, warnAt)
  }

  markDelayNoticeDue(message: MessageId, recipients: readonly RecipientId[]): void {
    for (const id of recipients) if (messageOf(id) === message) this.#markDelayNoticeDue.run(id)
  }

  report(report: Report): { readonly removed: boolean; readonly entered: boolean } {
    const { message, noticesSettled, notices, warnings, warnAt } = report
    const row = this.#message.get(message)
    if (row === undefined || !this.#isCurrent(report, row)) return { removed: false, entered: false }
    for (const { recipient, noticeDue } of noticesSettled) this.#pay.run(recipient, noticeDue)
    for (const notice of notices) this.#deps.intake.enqueue(notice)
    this.#deps.events.keep(report.events)
    if (this.#keepers.get({ message, most: 1 }) === 0) {
      this.#deps.departures.depart({ ...row, warnings }, { ...NO_OUTCOMES, keepUntil: report.keepUntil })
      return { removed: true, entered: true }
    }
    this.#setWarnings.run(warnings, warnAt, message)
    return { removed: false, entered: true }
  }

  /** Whether the notices are still correct. A recipient may have been settled or reported since they were composed. */
  #isCurrent({ message, noticesSettled, late, warnings }: Report, row: MessageRow): boolean {
    if (noticesSettled.length === 0 && warnings <= row.warnings) return false
    return (
      noticesSettled.every(
        ({ recipient, noticeDue }) => messageOf(recipient) === message && this.#noticeDue.get(recipient)?.noticeDue === noticeDue,
      ) && late.every((recipient) => this.#noticeDue.get(recipient)?.isLive === 1)
    )
  }

  /** Adds the live recipients, because a delay warning lists all delayed recipients. */
  #withLive(message: MessageId, due: readonly RecipientRow[]): readonly RecipientRow[] {
    const settled = due.filter(({ settled_at: at }) => at !== null)
    return [...settled, ...this.#live.all({ message })].toSorted((a, b) => a.id - b.id)
  }

  #toEntry(row: MessageRow, recipients: readonly RecipientRow[]): MessageWithNoticesDue | undefined {
    const message = this.#deps.corrupt.unless(row.id, () => {
      recipients.forEach(assertSound)
      return toMessage(row)
    })
    return message === undefined ? undefined : { message, warnings: row.warnings, recipients: recipients.map(toRecipient) }
  }
}
