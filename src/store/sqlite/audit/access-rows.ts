/** Rows of access entries. */
import type { Database } from 'better-sqlite3'
import type { AccessEntry, AccessSubject } from '../../access-entry.ts'
import * as sql from './audit-queries.ts'

export class AccessRows {
  readonly #forget
  readonly #set
  readonly #take
  readonly #delete

  constructor(db: Database) {
    this.#forget = db.prepare<[number]>(sql.forgetExpiredAccess)
    this.#set = db.prepare<AccessEntry>(sql.setAccess)
    this.#take = db.prepare<AccessEntry>(sql.takeAccess)
    this.#delete = db.prepare<[string, string]>(sql.deleteAccess)
  }

  setAccess(entry: AccessEntry): void {
    this.#forget.run(entry.addedAt)
    this.#set.run(entry)
  }

  /** Adds an entry unless there is one with its subject and key. */
  takeAccess(entry: AccessEntry): void {
    this.#take.run(entry)
  }

  removeAccess(subject: AccessSubject, key: string): boolean {
    return this.#delete.run(subject, key).changes > 0
  }
}

export const accessEntries = (db: Database): AccessEntry[] => db.prepare<[], AccessEntry>(sql.accessEntries).all()
