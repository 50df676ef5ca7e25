/**
 * Mail leaves the queue: its rows go, and one row remains that remembers message, recipients and all attempts. Mail
 * delivered at its first attempt thus never costs a row of history beside this one.
 */
import type { Database } from 'better-sqlite3'
import type { Instant } from '../../mail/clock.ts'
import type { Message, MessageId, Recipient, RecipientId } from '../message.ts'
import type { AttemptRecord, Settled } from '../store.ts'
import * as sql from './queries.ts'
import { asMessage, toAttempt, toRecipient, type AttemptRow, type MessageRow, type RecipientRow } from './rows.ts'

/** What is remembered of a message that has left. */
export interface DepartedRecord {
  readonly message: Message
  readonly forcedExpire: boolean
  readonly warnings: number
  readonly recipients: readonly Recipient[]
  readonly history: readonly AttemptRecord[]
}

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
  readonly #deletions
  readonly #deleteMessage

  constructor(db: Database) {
    this.#recipients = db.prepare<{ message: MessageId }, RecipientRow>(sql.recipientsOf)
    this.#attempts = db.prepare<{ message: MessageId }, AttemptRow>(sql.attemptsOf)
    this.#remember = db.prepare<[MessageId, Instant, string]>(sql.insertDeparted)
    this.#otherWithBody = db.prepare<[number, MessageId]>(sql.otherWithBody)
    this.#deleteChunks = db.prepare<{ body: number }>(sql.deleteChunks)
    this.#deletions = [sql.deleteRecipients, sql.deleteAttempts].map((text) => db.prepare<{ message: MessageId }>(text))
    this.#deleteMessage = db.prepare<[MessageId]>(sql.deleteMessage)
  }

  /** The message and everything of it becomes one line of history. */
  depart(row: MessageRow, news: LastNews = NOTHING_NEW): void {
    const message = row.id
    const recipients = this.#recipients.all({ message }).map((one) => brought(toRecipient(one), news))
    const history = [...this.#attempts.all({ message }).map(toAttempt), ...news.attempts]
    const leftAt = recipients.reduce((latest, one) => Math.max(latest, one.settledAt ?? 0), 0)
    const record = { message: asMessage(row), forcedExpire: row.forced_expire === 1, warnings: row.warnings, recipients, history }
    this.#remember.run(message, leftAt, encodeDeparted(record))
    for (const deletion of this.#deletions) deletion.run({ message })
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

/** A recipient's last outcome is usually that of its last attempt, and then it is written once. */
const SAME = 'as-attempted'

export function encodeDeparted({ recipients, history, ...rest }: DepartedRecord): string {
  const attempted = lastAttempts(history)
  return JSON.stringify({
    ...rest,
    recipients: recipients.map((one) => {
      const status = attempted.get(one.id)
      const same = status !== undefined && one.last !== null && JSON.stringify(status) === JSON.stringify(one.last)
      return same ? { ...one, last: SAME } : one
    }),
    history,
  })
}

export function decodeDeparted(json: string): DepartedRecord {
  type Stored = Omit<DepartedRecord, 'recipients'> & { recipients: (Omit<Recipient, 'last'> & { last: Recipient['last'] | typeof SAME })[] }
  const { recipients, ...rest } = JSON.parse(json) as Stored
  const attempted = lastAttempts(rest.history)
  return {
    ...rest,
    recipients: recipients.map((one) => ({ ...one, last: one.last === SAME ? (attempted.get(one.id) ?? null) : one.last })),
  }
}

const lastAttempts = (history: readonly AttemptRecord[]): Map<RecipientId, AttemptRecord['status']> =>
  new Map(history.map((attempt) => [attempt.recipient, attempt.status]))
