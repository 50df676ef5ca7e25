/**
 * Quarantines messages that cannot be read or that have crashed the daemon. Such a message moves to the `corrupt` queue, as in
 * Postfix, and is logged. No DSN is sent, and other mail is not affected.
 */
import Database from 'better-sqlite3'
import { errorCode, errorMessage } from '../../../system/caught-error.ts'
import { queueIdOf, type MessageId, type RecipientId } from '../../../mail/message.ts'
import type { EventRows } from '../outbox/event-rows.ts'
import * as sql from './queries.ts'
import { Undecodable } from '../../stored-values.ts'
import { type MessageRow } from './rows.ts'

/** A message that was moved to `corrupt`, as the log reports it. */
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
  /** Messages quarantined in the running transaction. They are reported when the transaction is committed. */
  #quarantined: Quarantined[] = []

  readonly #changed: (message: MessageId) => void
  readonly #events: EventRows

  /** `changed` is called for each message that is quarantined. */
  constructor(db: Database.Database, { changed, events }: { readonly changed: (message: MessageId) => void; readonly events: EventRows }) {
    this.#changed = changed
    this.#events = events
    this.#message = db.prepare<[MessageId], MessageRow>(sql.messageById)
    this.#place = db.prepare<[string, number | null, string | null, MessageId]>(sql.place)
    this.#park = db.prepare<{ message: MessageId }>(sql.park)
    this.#parkLeased = db.prepare<{ message: MessageId }>(sql.parkLeased)
    this.#parkOne = db.prepare<[RecipientId]>(sql.parkOne)
  }

  /** Quarantines a message that cannot be read, and ends its leases. */
  quarantine(message: MessageId, why: string): void {
    this.#setAside(message, why)
    changeRows(() => this.#parkLeased.run({ message }))
  }

  /**
   * Quarantines a message except for its recipients in delivery. These could be read, so they keep their leases and are settled
   * later.
   */
  setAside(message: MessageId, why: string): void {
    const row = this.#setAside(message, why)
    if (row !== undefined) this.#quarantined.push({ id: message, queueId: queueIdOf({ id: message, createdAt: row.created_at }), why })
  }

  #setAside(message: MessageId, why: string): MessageRow | undefined {
    const row = this.#message.get(message)
    if (row === undefined || row.placement === 'corrupt') return undefined
    changeRows(() => {
      this.#place.run('corrupt', null, why, message)
      this.#park.run({ message })
    })
    this.#changed(message)
    this.#events.quarantined(row, why)
    return row
  }

  /** Reads a part of a message. When the part is Undecodable, quarantines the message and returns undefined. */
  unless<T>(message: MessageId, read: () => T): T | undefined {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof Undecodable)) throw error
      this.setAside(message, error.message)
      return undefined
    }
  }

  /** Parks a recipient whose message row is missing. Otherwise every claim would return the recipient again. */
  park(recipient: RecipientId): void {
    changeRows(() => this.#parkOne.run(recipient))
  }

  /** Returns the messages that `setAside` has quarantined since the last call, and clears the list. */
  takeQuarantined(): readonly Quarantined[] {
    const quarantined = this.#quarantined
    this.#quarantined = []
    return quarantined
  }
}

/**
 * Changes rows that may be damaged. SQLite checks the types of all columns, also of those that stay as they are: a wrong type is damage
 * of the file, which the caller repairs.
 */
export function changeRows(change: () => void): void {
  try {
    change()
  } catch (cause) {
    if (errorCode(cause) !== 'SQLITE_CONSTRAINT_DATATYPE') throw cause
    throw new Database.SqliteError(`a row has a value of a wrong type: ${errorMessage(cause)}`, 'SQLITE_CORRUPT')
  }
}
