/**
 * Writes and searches the history. When a message leaves the queue, its rows are deleted and one history row is inserted, with the
 * message, its recipients and all attempts. Mail delivered at its first attempt therefore costs one history row.
 */
import type { Database } from 'better-sqlite3'
import type { QueueTime } from '../../system/clock.ts'
import type { MessageId, Recipient, RecipientId } from '../../mail/message.ts'
import { likeInJson, unquotedPattern } from '../../patterns/filter-pattern.ts'
import type { AttemptRecord, Settled } from '../queue-store.ts'
import { decodeHistory, encodeHistory } from '../history-record.ts'
import { departedRecipients, type HistoryFilter, type HistoryPage, type MessageDetails } from '../queue-reader.ts'
import type { EventRows } from './outbox/event-rows.ts'
import * as sql from './queries.ts'
import * as reading from './reader-queries.ts'
import { asDeparted, toAttempt, toRecipient, type AttemptRow, type DepartingRecipientRow, type DepartingRow } from './rows.ts'

/** Outcomes and attempts of the current settlement, which are not in the rows of the message yet. */
export interface UnsavedOutcomes {
  readonly settled: ReadonlyMap<RecipientId, Exclude<Settled, { state: 'waiting' }>>
  readonly attempts: readonly AttemptRecord[]
}

const NO_OUTCOMES: UnsavedOutcomes = { settled: new Map(), attempts: [] }

export class HistoryWriter {
  readonly #recipients
  readonly #attempts
  readonly #remember
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
    this.#deleteMessage.run(message)
    this.#events.removed(row, leftAt)
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

/**
 * Maximum number of history rows that one page searches, which takes some milliseconds. A filter may match few of them, or none.
 */
const SEARCHED = 10_000

interface DepartureRow {
  readonly seq: number
  readonly message: MessageId
  readonly leftAt: QueueTime
  readonly record: string
}

/** Searches the history, the newest row first. */
export class HistorySearch {
  readonly #first
  readonly #last
  readonly #rows

  constructor(db: Database) {
    this.#first = db.prepare<{ since: QueueTime }, number | null>(reading.firstDeparture).pluck()
    this.#last = db.prepare<[], number | null>(reading.lastDeparture).pluck()
    this.#rows = db.prepare<object, DepartureRow>(reading.departures)
  }

  departed(filter: HistoryFilter, { before, limit }: { readonly before: number | null; readonly limit: number }): HistoryPage {
    const since = filter.since ?? 0
    const first = this.#first.get({ since }) ?? null
    const end = before ?? (this.#last.get() ?? 0) + 1
    if (first === null || first >= end) return { messages: [], next: null }
    const from = Math.max(first, end - SEARCHED)
    const found: MessageDetails[] = []
    for (const row of this.#rows.iterate({ ...bound(filter), since, from, before: end, limit: SEARCHED })) {
      const one = { ...decodeHistory(row.message, row.record), queue: 'gone' as const, leftAt: row.leftAt }
      if (departedRecipients(filter, one).length === 0) continue
      found.push(one)
      if (found.length === limit) return { messages: found, next: row.seq > first ? row.seq : null }
    }
    return { messages: found, next: from > first ? from : null }
  }
}

const bound = ({ sender, recipient, outcome }: HistoryFilter) => ({
  sender: sender === null ? null : likeInJson(sender),
  senderUnquoted: sender === null ? null : likeInJson(unquotedPattern(sender)),
  recipient: recipient === null ? null : likeInJson(recipient),
  recipientUnquoted: recipient === null ? null : likeInJson(unquotedPattern(recipient)),
  outcome: outcome === null ? null : JSON.stringify(outcome),
})
