/**
 * What operators do to a message as a whole. Mail in delivery keeps its lease through all of it: its outcome is
 * recorded first, and what is then still alive goes where the operation would have put it.
 */
import type { Database } from 'better-sqlite3'
import type { Instant } from '../../mail/clock.ts'
import type { DestinationName, MessageId, Placement } from '../message.ts'
import type { AuditId, AuditRecord, DestinationDue, MessageOperation, Move, Operation, OperationResult } from '../store.ts'
import type { Departures } from './departed.ts'
import * as sql from './queries.ts'
import type { Requeueing } from './requeueing.ts'
import type { MessageRow } from './rows.ts'

/** Sorts before every real deletion: what could not be purged yet is purged by the next pruning. */
const LONG_AGO: Instant = 0

/** After these less waits than before, and nobody has to be woken. */
const WAITING_LESS: ReadonlySet<Operation['kind']> = new Set(['hold', 'delete'])
const NOBODY: readonly DestinationDue[] = []

type Deletion = Extract<Operation, { readonly kind: 'delete' }>

const isForTrash = (operation: Operation): operation is Deletion => operation.kind === 'delete' && !operation.purge

export class Operating {
  readonly #message
  readonly #placement
  readonly #destinations
  readonly #nextDue
  readonly #place
  readonly #flush
  readonly #park
  readonly #unpark
  readonly #expire
  readonly #discard
  readonly #discardRecipients
  readonly #remove
  readonly #hasLeased
  readonly #keepers
  readonly #audit
  readonly #countAudited
  readonly #reroute
  readonly #departures: Departures
  readonly #requeueing: Requeueing

  constructor(db: Database, departures: Departures, requeueing: Requeueing) {
    this.#departures = departures
    this.#requeueing = requeueing
    type Of = { message: MessageId }
    this.#message = db.prepare<[MessageId], MessageRow>(sql.messageById)
    this.#placement = db.prepare<[MessageId], Placement>(sql.placementOf).pluck()
    this.#destinations = db.prepare<Of, DestinationName>(sql.destinationsOf).pluck()
    this.#nextDue = db.prepare<{ destination: string }, Instant>(sql.nextDueAt).pluck()
    this.#place = db.prepare<[Placement, Instant | null, string | null, MessageId]>(sql.place)
    this.#flush = db.prepare<Of & { now: Instant }>(sql.flush)
    this.#park = db.prepare<Of>(sql.park)
    this.#unpark = db.prepare<Of>(sql.unpark)
    this.#expire = db.prepare<[MessageId]>(sql.forceExpire)
    this.#discard = db.prepare<{ messages: string; deletedAt: Instant }, MessageId>(sql.discard).pluck()
    this.#discardRecipients = db.prepare<{ messages: string }>(sql.discardRecipients)
    this.#remove = db.prepare<Of & { at: Instant; last: string | null }>(sql.removeParked)
    this.#hasLeased = db.prepare<Of>(sql.hasLeased)
    this.#keepers = db.prepare<Of & { most: number }, number>(sql.countKeepers).pluck()
    this.#audit = db.prepare(sql.insertAudit)
    this.#countAudited = db.prepare<[number, AuditId]>(sql.countAudited)
    this.#reroute = db.prepare<[Move]>(sql.move)
  }

  operate(operations: readonly MessageOperation[], auditedAs?: AuditId): OperationResult[] {
    const deleted = new Set(this.#delete(operations))
    const results = operations.map(({ message, operation }) =>
      isForTrash(operation) ? { changed: deleted.delete(message), woken: NOBODY } : this.#one(message, operation),
    )
    if (auditedAs !== undefined) this.#countAudited.run(results.filter(({ changed }) => changed).length, auditedAs)
    return results
  }

  #one(message: MessageId, operation: Operation): OperationResult {
    const placement = this.#placement.get(message)
    const changed = placement !== undefined && this.#apply(message, placement, operation)
    if (!changed || WAITING_LESS.has(operation.kind)) return { changed, woken: NOBODY }
    const entry = operation.kind === 'requeue' ? operation.newId : message
    return { changed, woken: this.#due(this.#destinations.all({ message: entry })) }
  }

  audit({ at, who, action, arguments: words, changed }: AuditRecord): AuditId {
    return Number(this.#audit.run(at, who, action, words, changed).lastInsertRowid)
  }

  move(moves: readonly Move[]): DestinationDue[] {
    for (const move of moves) this.#reroute.run(move)
    return this.#due(new Set(moves.map(({ destination }) => destination)))
  }

  /** For good: what is not in delivery is removed now, the rest when its outcome is known and pruning comes by. */
  purge(row: MessageRow, now: Instant): boolean {
    const message = row.id
    if (this.#hasLeased.get({ message }) !== undefined) {
      if (row.placement === 'trash' && row.deleted_at === LONG_AGO) return false
      this.#place.run('trash', LONG_AGO, null, message)
      this.#discardRecipients.run({ messages: JSON.stringify([message]) })
      return true
    }
    this.#remove.run({ message, at: now, last: null })
    if (this.#keepers.get({ message, most: 1 }) === 0) this.#departures.depart({ ...row, deleted_at: null })
    else this.#place.run('queued', null, null, message)
    return true
  }

  /** Says whether anything was changed. */
  #apply(message: MessageId, placement: Placement, operation: Operation): boolean {
    switch (operation.kind) {
      case 'flush':
        return placement === 'queued' && this.#flush.run({ message, now: operation.now }).changes > 0
      case 'hold':
        return placement === 'queued' && this.#move(message, 'hold')
      case 'release':
        return (placement === 'hold' || placement === 'corrupt') && this.#move(message, 'queued')
      case 'restore':
        return placement === 'trash' && this.#move(message, 'queued')
      case 'expire':
        return placement !== 'trash' && this.#expire.run(message).changes > 0
      case 'requeue':
        return placement !== 'trash' && this.#requeueing.requeue(this.#rowOf(message), operation)
      case 'delete':
        return this.purge(this.#rowOf(message), operation.now)
    }
  }

  #rowOf(message: MessageId): MessageRow {
    const row = this.#message.get(message)
    if (row === undefined) throw new Error(`message ${message} is not in the queue`)
    return row
  }

  #move(message: MessageId, placement: 'hold' | 'queued'): boolean {
    this.#place.run(placement, null, null, message)
    const moving = placement === 'hold' ? this.#park : this.#unpark
    moving.run({ message })
    return true
  }

  /** To the trash, all together. Nobody is warned of the delay of deleted mail; what has failed before is still reported. */
  #delete(operations: readonly MessageOperation[]): readonly MessageId[] {
    const deletions = operations.flatMap(({ message, operation }) => (isForTrash(operation) ? [{ message, at: operation.now }] : []))
    return [...Map.groupBy(deletions, ({ at }) => at)].flatMap(([deletedAt, those]) => {
      const changed = this.#discard.all({ messages: JSON.stringify(those.map(({ message }) => message)), deletedAt })
      this.#discardRecipients.run({ messages: JSON.stringify(changed) })
      return changed
    })
  }

  #due(destinations: Iterable<DestinationName>): DestinationDue[] {
    const due: DestinationDue[] = []
    for (const destination of destinations) {
      const dueAt = this.#nextDue.get({ destination })
      if (dueAt !== undefined) due.push({ destination, dueAt })
    }
    return due
  }
}
