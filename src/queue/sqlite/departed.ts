/**
 * Mail leaves the queue: its rows go, and one row remains that remembers message, recipients and all attempts. Mail
 * delivered at its first attempt thus never costs a row of history beside this one.
 */
import type { Database } from 'better-sqlite3'
import type { Instant } from '../../mail/clock.ts'
import type { MessageId, Recipient, RecipientId } from '../message.ts'
import type { AttemptRecord, Settled } from '../store.ts'
import { encodeDeparted } from './departed-record.ts'
import * as sql from './queries.ts'
import { asMessage, toAttempt, toRecipient, type AttemptRow, type MessageRow, type RecipientRow } from './rows.ts'

/** What the rows do not say yet: the last outcomes of a message that leaves with them. */
export interface LastNews {
  readonly settled: ReadonlyMap<RecipientId, Exclude<Settled, { state: 'waiting' }>>
  readonly attempts: readonly AttemptRecord[]
}

const NOTHING_NEW: LastNews = { settled: new Map(), attempts: [] }

export class Departures {
  readonly #recipients
  readonly #attempts
  readonly #remember
  readonly #otherWithBody
  readonly #deleteChunks
  readonly #deleteRecipients
  readonly #deleteAttempts
  readonly #deleteMessage

  constructor(db: Database) {
    this.#recipients = db.prepare<{ message: MessageId }, RecipientRow>(sql.recipientsOf)
    this.#attempts = db.prepare<{ message: MessageId }, AttemptRow>(sql.attemptsOf)
    this.#remember = db.prepare<[MessageId, Instant, string]>(sql.insertDeparted)
    this.#otherWithBody = db.prepare<[number, MessageId]>(sql.otherWithBody)
    this.#deleteChunks = db.prepare<{ body: number }>(sql.deleteChunks)
    this.#deleteRecipients = db.prepare<{ message: MessageId }>(sql.deleteRecipients)
    this.#deleteAttempts = db.prepare<{ message: MessageId }>(sql.deleteAttempts)
    this.#deleteMessage = db.prepare<[MessageId]>(sql.deleteMessage)
  }

  /** The message and everything of it becomes one line of history. */
  depart(row: MessageRow, news: LastNews = NOTHING_NEW): void {
    const message = row.id
    const recipients = this.#recipients.all({ message }).map((one) => brought(toRecipient(one), news))
    const attempts = this.#attempts.all({ message })
    const history = [...attempts.map(toAttempt), ...news.attempts]
    const leftAt = recipients.reduce((latest, one) => Math.max(latest, one.settledAt ?? 0), 0)
    const record = { message: asMessage(row), forcedExpire: row.forced_expire === 1, warnings: row.warnings, recipients, history }
    this.#remember.run(message, leftAt, encodeDeparted(record))
    this.#deleteRecipients.run({ message })
    if (attempts.length > 0) this.#deleteAttempts.run({ message })
    this.#deleteMessage.run(message)
    if (row.shares_body === 0 || this.#otherWithBody.get(row.body, message) === undefined) this.#deleteChunks.run({ body: row.body })
  }
}

/** The recipient with its last outcome. */
function brought(recipient: Recipient, { settled }: LastNews): Recipient {
  const news = settled.get(recipient.id)
  if (news === undefined) return recipient
  const { debt: _, ...rest } = recipient
  return { ...rest, state: news.state, settledAt: news.at, attempts: news.attempts, last: news.last, starts: 0 }
}
