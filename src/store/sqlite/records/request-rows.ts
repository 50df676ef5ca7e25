/** Rows of the requests that were carried out, each written in the transaction of its effect. */
import type { Database } from 'better-sqlite3'
import type { QueueTime } from '../../../system/clock.ts'
import { RequestRepeated, type IdempotentRequest, type KeptRequest } from '../../audit-log.ts'
import * as sql from './audit-queries.ts'

/** Number of requests that one call forgets, which takes a few milliseconds. */
const FORGOTTEN = 500

export class RequestRows {
  readonly #insert
  readonly #forget

  constructor(db: Database) {
    this.#insert = db.prepare<[string, string, QueueTime, string]>(sql.insertRequest)
    this.#forget = db.prepare<{ before: QueueTime; limit: number }>(sql.forgetRequests)
  }

  /** Throws RequestRepeated when the key is kept. */
  keep({ key, digest }: IdempotentRequest, at: QueueTime, answer: string): void {
    if (this.#insert.run(key, digest, at, answer).changes === 0)
      throw new RequestRepeated(`a request with the key ${key} was carried out before`)
  }

  /** Forgets a slice of the requests before a time. Returns whether more may be left. */
  forget(before: QueueTime): boolean {
    return this.#forget.run({ before, limit: FORGOTTEN }).changes === FORGOTTEN
  }
}

/** Reads a request that was carried out. */
export const findRequest = (db: Database, key: string): KeptRequest | undefined =>
  db.prepare<[string], KeptRequest>(sql.keptRequest).get(key)
