/**
 * Rows of the audit log. An operation has one row in `audit`, and one in `operated` for each message that it has changed, written in the
 * transaction that changes the message.
 */
import type { Database } from 'better-sqlite3'
import type { MessageId, Placement } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import {
  OPERATIONS_PER_MESSAGE,
  PLACING_ACTIONS,
  type AuditEntry,
  type AuditFilter,
  type AuditId,
  type AuditRecord,
  type NewOperation,
  type OperationEnd,
  type OperationRound,
  type PlacedPage,
} from '../../audit-log.ts'
import { formerOf } from '../../former-times.ts'
import { likePattern } from '../../../patterns/filter-pattern.ts'
import * as sql from './audit-queries.ts'
import type { RequestRows } from './request-rows.ts'

/** A message that an operation has changed, with its placement before, and its times before a reschedule. */
export type Operated = readonly [message: MessageId, was: Placement, former: string | null]

/** Number of rows of `operated` that one call forgets, which takes a few milliseconds. */
const FORGOTTEN = 1_000

const ABANDONED = 'the process that carried it out ended'

/** Ends the operations that the last owner of the queue has left. */
export const endAbandoned = (db: Database): void => void db.prepare<[string]>(sql.endAbandoned).run(ABANDONED)

export class AuditRows {
  readonly #insert
  readonly #begin
  readonly #isRunning
  readonly #count
  readonly #insertOperated
  readonly #end
  readonly #placementBefore
  readonly #oldestOperated
  readonly #forgetOperated
  readonly #requests: RequestRows

  constructor(db: Database, requests: RequestRows) {
    this.#requests = requests
    this.#insert = db.prepare<Omit<AuditRecord, 'reason'> & { readonly reason: string | null }>(sql.insertAudit)
    this.#begin = db.prepare<Omit<NewOperation, 'request'>>(sql.beginOperation)
    this.#isRunning = db.prepare<[AuditId]>(sql.isRunning)
    this.#count = db.prepare<OperationRound & { readonly changed: number }>(sql.countRound)
    this.#insertOperated = db.prepare<{ operation: AuditId; changed: string }>(sql.insertOperated)
    this.#end = db.prepare<object>(sql.endOperation)
    this.#placementBefore = db.prepare<[MessageId], Placement>(sql.placementBefore).pluck()
    this.#oldestOperated = db.prepare<[], { operation: AuditId; at: QueueTime }>(sql.oldestOperated)
    this.#forgetOperated = db.prepare<{ operation: AuditId; limit: number }>(sql.forgetOperated)
  }

  audit({ reason = null, ...record }: AuditRecord): AuditId {
    return Number(this.#insert.run({ ...record, reason }).lastInsertRowid)
  }

  beginOperation({ request, ...operation }: NewOperation): AuditId {
    const id = Number(this.#begin.run(operation).lastInsertRowid)
    if (request !== null) this.#requests.keep(request, operation.at, String(id))
    return id
  }

  isRunning(id: AuditId): boolean {
    return this.#isRunning.get(id) !== undefined
  }

  /** Counts a round and records the messages that it has changed, with those that it has added to the queue. */
  count(round: OperationRound, changed: number, operated: readonly Operated[]): void {
    this.#count.run({ ...round, changed })
    if (operated.length > 0) this.#insertOperated.run({ operation: round.operation, changed: JSON.stringify(operated) })
  }

  endOperation(id: AuditId, { state, at, matched = null, inTransfer = 0, unknown = null, error }: OperationEndValues): boolean {
    return this.#end.run({ id, state, at, matched, inTransfer, unknown, error }).changes > 0
  }

  /** Placement of a message in the trash before it was deleted; undefined when no operation has deleted it. */
  placementBefore(message: MessageId): Placement | undefined {
    return this.#placementBefore.get(message)
  }

  /** Forgets a slice of the messages that operations before a time have changed. Returns whether more may be left. */
  forgetOperated(before: QueueTime): boolean {
    const oldest = this.#oldestOperated.get()
    if (oldest === undefined || oldest.at >= before) return false
    this.#forgetOperated.run({ operation: oldest.operation, limit: FORGOTTEN })
    return true
  }
}

type OperationEndValues = Omit<OperationEnd, 'matched' | 'unknown'> & {
  readonly matched?: number | null | undefined
  readonly unknown?: number | null | undefined
}

/** Reads the audit log. */
export class AuditSearch {
  readonly #after
  readonly #before
  readonly #one
  readonly #on
  readonly #placed

  constructor(db: Database) {
    this.#after = db.prepare<{ after: AuditId; limit: number }, AuditEntry>(sql.auditAfter)
    this.#before = db.prepare<object, AuditEntry>(sql.auditBefore)
    this.#one = db.prepare<[AuditId], AuditEntry>(sql.operation)
    this.#on = db.prepare<{ message: MessageId; limit: number }, AuditEntry>(sql.operationsOn)
    this.#placed = db.prepare<object, { id: MessageId; createdAt: QueueTime | null; isLast: 0 | 1; former: string | null }>(sql.placedBy)
  }

  audit(page: { readonly after: AuditId; readonly limit: number }): AuditEntry[] {
    return this.#after.all(page)
  }

  auditBefore(
    { who, action, state, since, until }: AuditFilter,
    { before, limit }: { readonly before: AuditId | null; readonly limit: number },
  ) {
    const pattern = (text: string | null) => (text === null ? null : likePattern(text))
    const wanted = { who: pattern(who), action: pattern(action), state, since: since ?? 0, until: until ?? Number.MAX_SAFE_INTEGER }
    return this.#before.all({ ...wanted, before: before ?? Number.MAX_SAFE_INTEGER, limit })
  }

  operation(id: AuditId): AuditEntry | undefined {
    return this.#one.get(id)
  }

  operationsOn(message: MessageId): AuditEntry[] {
    return this.#on.all({ message, limit: OPERATIONS_PER_MESSAGE })
  }

  placedBy(operation: AuditId, { after, limit }: { readonly after: MessageId; readonly limit: number }): PlacedPage {
    const rows = this.#placed.all({ operation, after, limit, placing: JSON.stringify(PLACING_ACTIONS) })
    const messages = rows.flatMap(({ id, createdAt, isLast, former }) =>
      isLast === 1 && createdAt !== null ? [{ id, createdAt, former: formerOf(former) }] : [],
    )
    return { messages, next: rows.length < limit ? null : (rows.at(-1)?.id ?? null) }
  }
}
