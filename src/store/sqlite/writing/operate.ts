/**
 * Operations on whole messages. A recipient in delivery keeps its lease, and the outcome of that delivery is recorded first. If
 * the recipient is then still live, it takes the state that the operation requires.
 */
import type { Database } from 'better-sqlite3'
import { NO_CLASS, type Band } from '../../../config/values/mail-classes.ts'
import type { QueueTime } from '../../../system/clock.ts'
import type { DestinationName, MessageId, Placement, RecipientId } from '../../../mail/message.ts'
import type { OperationRound } from '../../records/audit-log.ts'
import {
  appliesAt,
  cancelledStatus,
  makesMailDue,
  PURGE_PENDING,
  type DestinationDue,
  type MessageOperation,
  type Move,
  type Operation,
  type OperationResult,
  type Rescheduling,
} from '../../message-operation.ts'
import type { HistoryWriter } from './history.ts'
import type { Operated } from '../../records/audit-records.ts'
import { CLASS_BANDS } from '../../records/class-band.ts'
import { BEGIN_ROUND, END_ROUND, HELD_BEFORE } from '../../records/operation-round.ts'
import type { RecordCalls } from '../records/record-calls.ts'
import { isSoundMessage, isSoundRecipient, messageCrc, outcomeCrc, recipientCrc } from '../file/checksums.ts'
import { formerText, type RecipientTimes } from '../../former-times.ts'
import { fromStatus } from '../../stored-values.ts'
import type { EventRows } from '../outbox/event-rows.ts'
import * as sql from './queries.ts'
import type { Requeueing } from './requeueing.ts'
import type { MessageRow, RecipientRow } from './rows.ts'
import type { TrafficRows } from './traffic-rows.ts'

const NO_DESTINATIONS: readonly DestinationDue[] = []

type Deletion = Extract<Operation, { readonly kind: 'delete' }>

/** Parts that operations use. */
interface OperatingParts {
  readonly departures: HistoryWriter
  readonly requeueing: Requeueing
  readonly traffic: TrafficRows
  readonly records: RecordCalls
  readonly events: EventRows
}

const isForTrash = (operation: Operation): operation is Deletion => operation.kind === 'delete' && !operation.purge

export class Operating {
  readonly #message
  readonly #placement
  readonly #destinations
  readonly #earliestDue
  readonly #place
  readonly #flush
  readonly #park
  readonly #unpark
  readonly #expire
  readonly #discardable
  readonly #discard
  readonly #discardRecipients
  readonly #remove
  readonly #hasLeased
  readonly #keepers
  readonly #reroute
  readonly #movable
  readonly #retime
  readonly #retimeAt
  readonly #times
  readonly #reclassed
  readonly #setBand
  readonly #live
  readonly #departures: HistoryWriter
  readonly #requeueing: Requeueing
  readonly #traffic: TrafficRows
  readonly #records: RecordCalls
  readonly #events: EventRows

  constructor(db: Database, parts: OperatingParts) {
    this.#records = parts.records
    this.#events = parts.events
    this.#departures = parts.departures
    this.#requeueing = parts.requeueing
    this.#traffic = parts.traffic
    type Of = { message: MessageId }
    this.#message = db.prepare<[MessageId], MessageRow>(sql.messageById)
    this.#placement = db.prepare<[MessageId], Placement>(sql.placementOf).pluck()
    this.#destinations = db.prepare<Of, DestinationName>(sql.destinationsOf).pluck()
    this.#earliestDue = db.prepare<{ destination: string }, QueueTime | null>(sql.earliestDue).pluck()
    this.#place = db.prepare<[Placement, QueueTime | null, string | null, MessageId]>(sql.place)
    this.#flush = db.prepare<Of & { now: QueueTime }>(sql.flush)
    this.#park = db.prepare<Of>(sql.park)
    this.#unpark = db.prepare<Of>(sql.unpark)
    this.#expire = db.prepare<[MessageId]>(sql.forceExpire)
    this.#discardable = db.prepare<{ messages: string }, { id: MessageId; placement: Placement }>(sql.discardable)
    this.#discard = db.prepare<{ messages: string; deletedAt: QueueTime }>(sql.discard)
    this.#discardRecipients = db.prepare<{ messages: string }>(sql.discardRecipients)
    this.#remove = db.prepare<Of & { at: QueueTime; last: string | null; lastCrc: number | null }>(sql.removeParked)
    this.#hasLeased = db.prepare<Of>(sql.hasLeased)
    this.#keepers = db.prepare<Of & { most: number }, number>(sql.countKeepers).pluck()
    this.#reroute = db.prepare<[Move & { readonly crc: number }]>(sql.move)
    this.#retime = db.prepare<Pick<MessageRow, 'id' | 'not_before' | 'scheduled' | 'hold_request' | 'expires'> & { crc: number }>(
      sql.reschedule,
    )
    this.#retimeAt = db.prepare<Of & RecipientTimes>(sql.rescheduleAt)
    this.#times = db.prepare<Of, RecipientTimes>(sql.timesOf)
    this.#reclassed = db.prepare<Pick<MessageRow, 'id' | 'class'> & { crc: number }>(sql.reclass)
    this.#setBand = db.prepare<{ id: RecipientId; band: Band; crc: number }>(sql.setBand)
    this.#live = db.prepare<Of, RecipientRow>(sql.liveRecipientsOf)
    this.#movable = db.prepare<[RecipientId], RecipientRow>(sql.movable)
  }

  operate(operations: readonly MessageOperation[], round?: OperationRound): OperationResult[] | null {
    if (round !== undefined && !this.#records.run(BEGIN_ROUND, round)) return null
    const operated: Operated[] = []
    const deleted = new Set(this.#delete(operations, operated))
    const results = operations.map(({ message, operation, events }) => {
      const result = isForTrash(operation)
        ? { changed: deleted.delete(message), woken: NO_DESTINATIONS }
        : this.#one(message, operation, operated)
      if (result.changed) this.#events.keep(events)
      return result
    })
    if (round !== undefined) this.#records.run(END_ROUND, round, results.filter(({ changed }) => changed).length, operated)
    return results
  }

  #one(message: MessageId, operation: Operation, operated: Operated[]): OperationResult {
    const placement = this.#placement.get(message)
    const former = placement === undefined ? null : this.#former(message, operation)
    if (placement === undefined || !appliesAt(operation, placement) || !this.#apply(message, operation))
      return { changed: false, woken: NO_DESTINATIONS }
    operated.push([message, placement, former])
    if (operation.kind === 'requeue') operated.push([operation.newId, 'queued', null])
    if (!makesMailDue(operation)) return { changed: true, woken: NO_DESTINATIONS }
    const entry = operation.kind === 'requeue' ? operation.newId : message
    return { changed: true, woken: this.#due(this.#destinations.all({ message: entry })) }
  }

  move(moves: readonly Move[]): DestinationDue[] {
    for (const move of moves) {
      const row = this.#movable.get(move.recipient)
      // A damaged row does not change, and its message is quarantined at the next claim.
      if (row !== undefined && isSoundRecipient(row))
        this.#reroute.run({ ...move, crc: recipientCrc({ ...row, destination: move.destination }) })
    }
    return this.#due(new Set(moves.map(({ destination }) => destination)))
  }

  /**
   * Deletes a message permanently. When a recipient is in delivery, marks the message for deletion by the next pruning; returns
   * false if it was marked before.
   */
  purge(row: MessageRow, now: QueueTime): boolean {
    const message = row.id
    if (this.#hasLeased.get({ message }) !== undefined) {
      if (row.placement === 'trash' && row.deleted_at === PURGE_PENDING) return false
      this.#place.run('trash', PURGE_PENDING, null, message)
      this.#discardRecipients.run({ messages: JSON.stringify([message]) })
      return true
    }
    this.#traffic.note({ kind: 'deleted', at: now, recipients: this.#remove.run({ message, at: now, last: null, lastCrc: null }).changes })
    if (this.#keepers.get({ message, most: 1 }) === 0) this.#departures.depart(row)
    else this.#place.run('queued', null, null, message)
    return true
  }

  /** Applies an operation. Returns whether the message was changed. */
  #apply(message: MessageId, operation: Operation): boolean {
    switch (operation.kind) {
      case 'flush':
        return this.#flush.run({ message, now: operation.now }).changes > 0
      case 'hold':
        return this.#move(message, 'hold')
      case 'release':
        return this.#move(message, 'queued')
      case 'restore':
        return this.#restore(message)
      case 'expire':
        return this.#expire.run(message).changes > 0
      case 'requeue':
        return this.#requeueing.requeue(this.#rowOf(message), operation)
      case 'delete':
        return this.purge(this.#rowOf(message), operation.now)
      case 'reschedule':
        return this.#reschedule(this.#rowOf(message), operation)
      case 'reclass':
        return this.#reclass(this.#rowOf(message), operation.class)
      case 'cancel':
        return this.#cancel(this.#rowOf(message), operation)
    }
  }

  #reschedule(row: MessageRow, { notBefore, scheduled, holdRequest, expires, times, anyWaiting }: Rescheduling): boolean {
    const message = row.id
    if ((row.scheduled !== 1 && !anyWaiting) || !isSoundMessage(row) || this.#hasLeased.get({ message }) !== undefined) return false
    const request = holdRequest === undefined ? row.hold_request : holdRequest
    const columns = { not_before: notBefore ?? null, hold_request: request, expires: expires ?? null }
    this.#retime.run({ ...columns, id: message, scheduled: scheduled === true ? 1 : null, crc: messageCrc({ ...row, ...columns }) })
    for (const one of times) this.#retimeAt.run({ message, ...one })
    return true
  }

  #reclass(row: MessageRow, name: string | null): boolean {
    if ((row.class ?? null) === name || !isSoundMessage(row)) return false
    const band = this.#records.run(CLASS_BANDS.all).find((one) => one.name === name)?.band ?? NO_CLASS
    this.#reclassed.run({ id: row.id, class: name, crc: messageCrc({ ...row, class: name }) })
    for (const one of this.#live.all({ message: row.id }))
      if (isSoundRecipient(one)) this.#setBand.run({ id: one.id, band, crc: recipientCrc({ ...one, band, turn: null }) })
    return true
  }

  /** The times or the class that the operation replaces, which its undo needs; null for other operations. */
  #former(message: MessageId, { kind }: Operation): string | null {
    if (kind === 'reclass') return formerText({ class: this.#rowOf(message).class ?? null })
    return kind === 'reschedule' ? this.#formerTimes(message) : null
  }

  #formerTimes(message: MessageId): string {
    const { not_before: notBefore, scheduled, hold_request: holdRequest, expires } = this.#rowOf(message)
    return formerText({
      notBefore: notBefore ?? undefined,
      scheduled: scheduled === 1 ? true : undefined,
      holdRequest: holdRequest ?? undefined,
      expires: expires ?? undefined,
      times: this.#times.all({ message }),
    })
  }

  #cancel(row: MessageRow, { now, by }: Extract<Operation, { readonly kind: 'cancel' }>): boolean {
    const message = row.id
    const last = fromStatus(cancelledStatus(by))
    const { changes } = this.#remove.run({ message, at: now, last, lastCrc: outcomeCrc(last) })
    this.#traffic.note({ kind: 'deleted', at: now, recipients: changes })
    if (changes > 0 && this.#keepers.get({ message, most: 1 }) === 0) this.#departures.depart(row)
    return changes > 0
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

  /** Takes a message out of the trash. One that was on hold when it was deleted stays parked. */
  #restore(message: MessageId): boolean {
    if (this.#records.run(HELD_BEFORE, [message]).length === 0) return this.#move(message, 'queued')
    this.#place.run('hold', null, null, message)
    return true
  }

  /**
   * Moves messages to the trash, with one statement per deletion time, and returns their ids. Their delay warnings are dropped;
   * failure notices that are due remain due.
   */
  #delete(operations: readonly MessageOperation[], operated: Operated[]): readonly MessageId[] {
    const deletions = operations.flatMap(({ message, operation }) => (isForTrash(operation) ? [{ message, at: operation.now }] : []))
    return [...Map.groupBy(deletions, ({ at }) => at)].flatMap(([deletedAt, those]) => {
      const found = this.#discardable.all({ messages: JSON.stringify(those.map(({ message }) => message)) })
      for (const { id, placement } of found) operated.push([id, placement, null])
      const changed = found.map(({ id }) => id)
      const messages = JSON.stringify(changed)
      this.#discard.run({ messages, deletedAt })
      this.#discardRecipients.run({ messages })
      return changed
    })
  }

  #due(destinations: Iterable<DestinationName>): DestinationDue[] {
    const due: DestinationDue[] = []
    for (const destination of destinations) {
      const dueAt = this.#earliestDue.get({ destination }) ?? null
      if (dueAt !== null) due.push({ destination, dueAt })
    }
    return due
  }
}
