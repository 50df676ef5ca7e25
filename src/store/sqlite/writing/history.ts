/**
 * Writes the history. When a message leaves the queue, its rows are deleted and one history row is inserted, with the
 * message, its recipients and all attempts. Mail delivered at its first attempt therefore costs one history row.
 */
import type { Database } from 'better-sqlite3'
import type { QueueTime } from '../../../system/clock.ts'
import type { MessageId, Recipient, RecipientId } from '../../../mail/message.ts'
import type { AttemptRecord, Settled } from '../../recorded-outcomes.ts'
import { isReturned } from '../../returned-mail.ts'
import { encodeHistory } from '../../history-record.ts'
import type { EventRows } from '../outbox/event-rows.ts'
import * as sql from './queries.ts'
import { asDeparted, toRecipient, type DepartingRecipientRow, type DepartingRow } from './rows.ts'
import { toAttempt, type AttemptRow } from '../../sql/stored-rows.ts'

/** Outcomes and attempts of the current settlement, which are not in the rows of the message yet. */
interface UnsavedOutcomes {
  readonly settled: ReadonlyMap<RecipientId, Exclude<Settled, { state: 'waiting' }>>
  readonly attempts: readonly AttemptRecord[]
  /** As in Settlement. */
  readonly keepUntil?: QueueTime | undefined
}

export const NO_OUTCOMES: UnsavedOutcomes = { settled: new Map(), attempts: [] }

export class HistoryWriter {
  readonly #recipients
  readonly #attempts
  readonly #remember
  readonly #keepContent
  readonly #otherWithContent
  readonly #deleteChunks
  readonly #deleteRecipients
  readonly #deleteAttempts
  readonly #deleteMessage
  readonly #events: EventRows

  constructor(db: Database, events: EventRows) {
    this.#events = events
    this.#recipients = db.prepare<{ message: MessageId }, DepartingRecipientRow>(sql.recipientsOf)
    this.#attempts = db.prepare<{ message: MessageId }, AttemptRow>(sql.attemptsOf)
    this.#remember = db.prepare<[MessageId, QueueTime, string]>(sql.insertHistory)
    this.#keepContent = db.prepare<{ message: MessageId; until: QueueTime }>(sql.keepContent)
    this.#otherWithContent = db.prepare<{ content: number; message: MessageId }>(sql.otherWithContent)
    this.#deleteChunks = db.prepare<{ content: number }>(sql.deleteChunks)
    this.#deleteRecipients = db.prepare<{ message: MessageId }>(sql.deleteRecipients)
    this.#deleteAttempts = db.prepare<{ message: MessageId }>(sql.deleteAttempts)
    this.#deleteMessage = db.prepare<[MessageId]>(sql.deleteMessage)
  }

  /**
   * Replaces a message and all its rows by one row of history. `rows` are the rows of its recipients, if the caller has read them
   * already.
   */
  depart(row: DepartingRow, unsaved: UnsavedOutcomes = NO_OUTCOMES, rows = this.#recipients.all({ message: row.id })): void {
    const message = row.id
    const recipients = rows.map((one) => withOutcome(toRecipient(one), unsaved))
    // Mail without an outcome has no attempts.
    const attempts = rows.some(hasOutcome) ? this.#attempts.all({ message }) : []
    const history = [...attempts.map(toAttempt), ...unsaved.attempts]
    const leftAt = recipients.reduce((latest, one) => Math.max(latest, one.settledAt ?? 0), 0)
    const record = { message: asDeparted(row), forcedExpire: row.forced_expire === 1, warnings: row.warnings, recipients, history }
    this.#remember.run(message, leftAt, encodeHistory(record))
    this.#deleteRecipients.run({ message })
    if (attempts.length > 0) this.#deleteAttempts.run({ message })
    const isKept = unsaved.keepUntil !== undefined && isReturned(recipients)
    if (isKept) this.#keepContent.run({ message, until: unsaved.keepUntil })
    this.#deleteMessage.run(message)
    this.#events.removed(row, leftAt)
    if (isKept) return
    const content = row.content_id
    if (row.shares_content === 0 || this.#otherWithContent.get({ content, message }) === undefined) this.#deleteChunks.run({ content })
  }
}

const hasOutcome = ({ last, attempts }: DepartingRecipientRow): boolean => last !== null || attempts > 0

/** Returns a recipient with its outcome from the current settlement, if it has one. */
function withOutcome(recipient: Recipient, { settled }: UnsavedOutcomes): Recipient {
  const outcome = settled.get(recipient.id)
  if (outcome === undefined) return recipient
  const { state, at: settledAt, attempts, last } = outcome
  return { ...recipient, state, settledAt, attempts, last, deliveryStarts: 0, noticeDue: undefined }
}
