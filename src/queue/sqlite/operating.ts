/**
 * What operators do to a message as a whole. Mail in delivery keeps its lease through all of it: its outcome is
 * recorded first, and what is then still alive goes where the operation would have put it.
 */
import type { Database } from 'better-sqlite3'
import type { Instant } from '../../mail/clock.ts'
import type { DestinationName, MessageId, Placement } from '../message.ts'
import type { AuditRecord, DestinationDue, MessageOperation, Move, Operation, OperationResult } from '../store.ts'
import type { Departures } from './departed.ts'
import * as sql from './queries.ts'
import type { Requeueing } from './requeueing.ts'
import type { MessageRow } from './rows.ts'

/** Sorts before every real deletion: what could not be purged yet is purged by the next pruning. */
const LONG_AGO: Instant = 0

/** After these less waits than before, and nobody has to be woken. */
const WAITING_LESS: ReadonlySet<Operation['kind']> = new Set(['hold', 'delete'])

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
  readonly #discardRecipients
  readonly #remove
  readonly #hasLeased
  readonly #keepers
  readonly #audit
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
    this.#discardRecipients = db.prepare<Of>(sql.discardRecipients)
    this.#remove = db.prepare<Of & { at: Instant; last: string | null }>(sql.removeParked)
    this.#hasLeased = db.prepare<Of>(sql.hasLeased)
    this.#keepers = db.prepare<Of & { most: number }, number>(sql.countKeepers).pluck()
    this.#audit = db.prepare(sql.insertAudit)
    this.#reroute = db.prepare<[Move]>(sql.move)
  }

  operate({ message, operation }: MessageOperation): OperationResult {
    const row = this.#message.get(message)
    if (row === undefined) return { changed: false, woken: [], placement: 'gone' }
    const { changed, entry = message } = this.#apply(row, operation)
    const placement = this.#placement.get(message) ?? 'gone'
    if (!changed || WAITING_LESS.has(operation.kind)) return { changed, woken: [], placement }
    return { changed, woken: this.#due(this.#destinations.all({ message: entry })), placement }
  }

  audit({ at, who, action, arguments: words, changed }: AuditRecord): void {
    this.#audit.run(at, who, action, words, changed)
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
      this.#discard(message, LONG_AGO)
      return true
    }
    this.#remove.run({ message, at: now, last: null })
    if (this.#keepers.get({ message, most: 1 }) === 0) this.#departures.depart({ ...row, deleted_at: null })
    else this.#place.run('queued', null, null, message)
    return true
  }

  #apply(row: MessageRow, operation: Operation): { readonly changed: boolean; readonly entry?: MessageId } {
    const message = row.id
    switch (operation.kind) {
      case 'flush':
        return { changed: row.placement === 'queued' && this.#flush.run({ message, now: operation.now }).changes > 0 }
      case 'hold':
        return { changed: row.placement === 'queued' && this.#move(message, 'hold') }
      case 'release':
        return { changed: (row.placement === 'hold' || row.placement === 'corrupt') && this.#move(message, 'queued') }
      case 'restore':
        return { changed: row.placement === 'trash' && this.#move(message, 'queued') }
      case 'expire':
        return { changed: row.placement !== 'trash' && this.#expire.run(message).changes > 0 }
      case 'requeue':
        return { changed: row.placement !== 'trash' && this.#requeueing.requeue(row, operation), entry: operation.newId }
      case 'delete':
        if (operation.purge) return { changed: this.purge(row, operation.now) }
        return { changed: row.placement !== 'trash' && this.#discard(message, operation.now) }
    }
  }

  #move(message: MessageId, placement: 'hold' | 'queued'): boolean {
    this.#place.run(placement, null, null, message)
    const moving = placement === 'hold' ? this.#park : this.#unpark
    moving.run({ message })
    return true
  }

  /** To the trash. Nobody is warned of the delay of deleted mail; what has failed before is still reported. */
  #discard(message: MessageId, deletedAt: Instant): boolean {
    this.#place.run('trash', deletedAt, null, message)
    this.#discardRecipients.run({ message })
    return true
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
