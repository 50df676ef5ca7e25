/**
 * Sets aside what cannot be read or has brought the daemon down: the message moves to `corrupt`, nobody is told but
 * the log, and the queue goes on.
 */
import type { Database } from 'better-sqlite3'
import { queueIdOf, type MessageId, type RecipientId } from '../message.ts'
import * as sql from './queries.ts'
import { Undecodable, type MessageRow } from './rows.ts'

/** A message that was set aside, for the log. */
export interface Quarantined {
  readonly id: MessageId
  readonly queueId: string
  readonly why: string
}

export class Corrupt {
  readonly #message
  readonly #place
  readonly #park
  readonly #parkLeased
  readonly #parkOne
  /** Found unreadable and set aside in this transaction, unasked; told when it is committed. */
  #news: Quarantined[] = []

  constructor(db: Database) {
    this.#message = db.prepare<[MessageId], MessageRow>(sql.messageById)
    this.#place = db.prepare<[string, number | null, string | null, MessageId]>(sql.place)
    this.#park = db.prepare<{ message: MessageId }>(sql.park)
    this.#parkLeased = db.prepare<{ message: MessageId }>(sql.parkLeased)
    this.#parkOne = db.prepare<[RecipientId]>(sql.parkOne)
  }

  /** The message cannot be read by whoever leased it: its leases end. */
  quarantine(message: MessageId, why: string): void {
    this.#setAside(message, why)
    this.#parkLeased.run({ message })
  }

  /** What is in delivery now keeps its lease: that part could be read, and its outcome is recorded when it comes. */
  setAside(message: MessageId, why: string): void {
    const row = this.#setAside(message, why)
    if (row !== undefined) this.#news.push({ id: message, queueId: queueIdOf({ id: message, createdAt: row.created_at }), why })
  }

  #setAside(message: MessageId, why: string): MessageRow | undefined {
    const row = this.#message.get(message)
    if (row === undefined || row.placement === 'corrupt') return undefined
    this.#place.run('corrupt', null, why, message)
    this.#park.run({ message })
    return row
  }

  /** Reads a part of a message, or sets the message aside. */
  unless<T>(message: MessageId, read: () => T): T | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof Undecodable)) throw error
      this.setAside(message, error.message)
      return undefined
    }
  }

  /** A recipient of no message: it must not be found as due for ever. */
  park(recipient: RecipientId): void {
    this.#parkOne.run(recipient)
  }

  /** What was set aside since it was asked last. */
  takeNews(): readonly Quarantined[] {
    const news = this.#news
    this.#news = []
    return news
  }
}
