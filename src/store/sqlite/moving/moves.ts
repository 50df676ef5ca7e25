/**
 * Moves of messages between queues. A message that is out of its queue, or not yet in it, is one row of JSON without rows of message and
 * recipient, so that no statement about queued mail finds it. Its content stays in its chunks.
 */
import { NO_CLASS, type Band } from '../../../config/values/mail-classes.ts'
import { crc32 } from '../../../system/crc32.ts'
import type { Database } from 'better-sqlite3'
import { queueIdOf, STARTS_UNTIL_SUSPECT, type DestinationName, type Message, type MessageId } from '../../../mail/message.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { decodeHistory, encodeHistory } from '../../history-record.ts'
import {
  liveRecipients,
  movedRecord,
  RECIPIENTS_PER_ROUND,
  renumbered,
  withoutClass,
  type Admitted,
  type Arrival,
  type MovedMessage,
  type MovedRecipient,
  type MovedRecords,
  type MoveRound,
  type MoveSelection,
  type MoveState,
  type MoveStore,
  type MoveTarget,
  type NumberedHistory,
  type Origin,
  type QueueIdentity,
  type RecordsTaken,
} from '../../move-store.ts'
import { takeAccess } from '../../records/access-entry.ts'
import { ACCESS_TOKENS } from '../../records/access-token.ts'
import { takeGrant } from '../../records/kept-grant.ts'
import { takeSuppression } from '../../records/suppression-entry.ts'
import { takeSuspension } from '../../records/provider-state.ts'
import type { RecordCalls } from '../records/record-calls.ts'
import type { AuditId } from '../../records/audit-log.ts'
import type { DestinationRecord } from '../../queue-store.ts'
import type { DestinationDue } from '../../message-operation.ts'
import { fromNotify, fromStatus } from '../../stored-values.ts'
import type { Intake } from '../writing/enqueue.ts'
import { isSoundMessage, isSoundRecipient, messageCrc, outcomeCrc, recipientCrc } from '../file/checksums.ts'
import { COUNT_CHANGED, TAKE_ENTRY } from '../../records/operation-round.ts'
import type { SubscriptionRows } from '../outbox/subscription-rows.ts'
import * as moving from './move-queries.ts'
import * as sql from '../writing/queries.ts'
import { indexAnew } from '../search/search-queries.ts'
import { asMessage, fromMessage, toRecipient, type MessageRow, type RecipientRow } from '../writing/rows.ts'
import { attemptRow, toAttempt, type AttemptRow } from '../../sql/stored-rows.ts'
import type { TrafficRows } from '../writing/traffic-rows.ts'

/** Maximum number of messages that one call considers, which takes some milliseconds. */
const SLICE = 256

interface MovingRow {
  readonly message: MessageId
  readonly shares_content: number
  /** MoveTarget as JSON. */
  readonly target: string
  readonly record: string
  readonly crc: number
}

type ArrivingRow = Pick<MovingRow, 'record' | 'crc'> & { readonly id: MessageId }

type Synchronous = {
  readonly [M in Exclude<keyof MoveStore, 'claimMoves'>]: (...args: Parameters<MoveStore[M]>) => Awaited<ReturnType<MoveStore[M]>>
}

export class Moves implements Synchronous {
  readonly #intake: Intake
  readonly #records: RecordCalls
  readonly #subscriptions: SubscriptionRows
  readonly #traffic: TrafficRows
  readonly #run

  constructor(
    db: Database,
    parts: {
      readonly intake: Intake
      readonly traffic: TrafficRows
      readonly records: RecordCalls
      readonly subscriptions: SubscriptionRows
    },
  ) {
    this.#subscriptions = parts.subscriptions
    this.#records = parts.records
    this.#intake = parts.intake
    this.#traffic = parts.traffic
    this.#run = statements(db)
    this.#intake.retire(this.#run.movedTo.get() !== undefined)
  }

  moveState(): MoveState {
    const run = this.#run
    run.giveIdentity.run()
    return {
      identity: String(run.identity.get()),
      movedTo: run.movedTo.get() ?? null,
      leaving: run.countLeaving.get() ?? 0,
      arriving: run.countArriving.get() ?? 0,
      last: run.lastMessage.get() ?? 0,
    }
  }

  // --- source

  beginMove({ target, after, through, limit, withNoticesDue }: MoveSelection): MoveRound {
    const messages: MovedMessage[] = []
    const unreadable: Origin[] = []
    let [recipients, last] = [0, after]
    const rows = this.#run.slice.all({ after, through, size: SLICE })
    for (const row of rows) {
      if (messages.length === limit || recipients >= RECIPIENTS_PER_ROUND) return { messages, unreadable, next: last }
      last = row.id
      if (this.#stays(row.id, withNoticesDue)) continue
      const moved = this.#read(row)
      if (moved === null) unreadable.push({ id: row.id, createdAt: row.created_at })
      else {
        this.#takeOut(row, moved, target)
        recipients += messages.push(moved) && moved.recipients.length
      }
    }
    return { messages, unreadable, next: rows.length < SLICE ? null : last }
  }

  leaving(limit: number): { readonly target: MoveTarget; readonly moved: MovedMessage }[] {
    const rows = this.#run.movingRows.all({ limit })
    return rows.map((row) => ({ target: targetOf(row), moved: decoded(row.message, row) }))
  }

  finishMove(finished: readonly { readonly id: MessageId; readonly as: string }[], at: QueueTime, auditedAs: AuditId | null): void {
    let changed = 0
    for (const { id, as } of finished) {
      const row = this.#run.movingRow.get(id)
      if (row === undefined) continue
      const moved = decoded(id, row)
      const record = movedRecord(moved, { name: targetOf(row).name, as, at })
      this.#run.insertHistory.run(id, at, encodeHistory(record))
      this.#run.deleteMoving.run(id)
      const content = moved.message.contentId
      if (row.shares_content === 0 || this.#run.otherWithContent.get({ content, message: id }) === undefined)
        this.#run.deleteChunks.run({ content })
      changed++
    }
    if (auditedAs !== null) this.#records.run(COUNT_CHANGED, auditedAs, changed)
  }

  undoMove(messages: readonly MessageId[]): DestinationDue[] {
    const entered = messages.flatMap((id) => {
      const row = this.#run.movingRow.get(id)
      if (row === undefined) return []
      this.#run.deleteMoving.run(id)
      return [this.#enter(decoded(id, row), row.shares_content)]
    })
    return this.#due(entered)
  }

  historyAfter(seq: number, limit: number): NumberedHistory[] {
    const rows = this.#run.historyAfter.all({ after: seq, limit })
    return rows.map((row) => ({ ...row, record: decodeHistory(row.message, row.record) }))
  }

  markMoved(name: string): boolean {
    if (this.#run.isInUse.get() !== 0) return false
    this.#run.unmarkMoved.run()
    this.#run.markMoved.run(name)
    this.#intake.retire(true)
    return true
  }

  #stays(message: MessageId, withNoticesDue: boolean): boolean {
    if (this.#run.hasLeased.get({ message }) !== undefined) return true
    return !withNoticesDue && this.#run.anyNoticeDue.get({ message }) !== undefined
  }

  /** A queued message with all its rows; null when a row does not match its checksum. */
  #read(row: MessageRow): MovedMessage | null {
    const message = row.id
    const recipients = this.#run.recipients.all({ message })
    if (!isSoundMessage(row) || !recipients.every(isSoundRecipient)) return null
    return {
      message: asMessage(row),
      placement: row.placement,
      deletedAt: row.deleted_at,
      why: row.why,
      forcedExpire: row.forced_expire === 1,
      warnings: row.warnings,
      warnAt: row.warn_at,
      recipients: recipients.map((one) => ({ ...toRecipient(one), keptDueAt: one.kept_due_at })),
      attempts: this.#run.attempts.all({ message }).map(toAttempt),
    }
  }

  #takeOut(row: MessageRow, moved: MovedMessage, target: MoveTarget): void {
    const message = row.id
    const [record, crc] = encoded(moved)
    this.#run.insertMoving.run(message, row.shares_content, JSON.stringify(target), record, crc)
    this.#run.deleteRecipients.run({ message })
    this.#run.deleteAttempts.run({ message })
    this.#run.deleteMessage.run(message)
    this.#traffic.note({ kind: 'accepted', at: row.arrived_at, recipients: -liveRecipients(moved) })
  }

  // --- target

  keepIds(_source: QueueIdentity, through: MessageId): void {
    this.#run.useId.run(through)
  }

  takeMoved(source: QueueIdentity, arrivals: readonly Arrival[], destinations: readonly DestinationRecord[]): string[] {
    this.#run.unmarkMoved.run()
    this.#intake.retire(false)
    for (const record of destinations) this.#addDestination(record)
    return arrivals.map((arrival) => {
      const known = this.#run.originOf.get(source, arrival.origin.id, arrival.origin.createdAt)
      if (known === undefined) return this.#take(source, arrival)
      if (arrival.staged !== null) this.#intake.unstage(arrival.staged)
      return known.queueId
    })
  }

  originsOf(source: QueueIdentity, origins: readonly Origin[]): (string | null)[] {
    return origins.map(({ id, createdAt }) => this.#run.originOf.get(source, id, createdAt)?.queueId ?? null)
  }

  admitMoved(source: QueueIdentity, limit: number, now: QueueTime): Admitted {
    const rows = this.#run.arrivingRows.all({ source, limit })
    const entered = rows.map((row) => {
      this.#run.admitOrigin.run(now, row.id)
      return this.#enter(decoded(row.id, row), 0)
    })
    return { messages: rows.map(({ id }) => id), woken: this.#due(entered) }
  }

  takeRecords(
    source: QueueIdentity,
    { history, audit, destinations, access, tokens, grants, suspensions, suppressions, subscriptions }: MovedRecords,
  ): void {
    const taken = { ...this.recordsTaken(source) }
    for (const { seq, message, leftAt, record } of history) {
      if (seq <= taken.history) continue
      this.#run.insertHistory.run(message, leftAt, encodeHistory(record))
      this.#run.indexAnew.run(message)
      taken.history = seq
    }
    for (const entry of audit) {
      if (entry.id <= taken.audit) continue
      this.#records.run(TAKE_ENTRY, entry)
      taken.audit = entry.id
    }
    for (const record of destinations) this.#addDestination(record)
    for (const entry of access) this.#records.run(takeAccess, entry)
    for (const token of tokens) this.#records.run(ACCESS_TOKENS.add, token)
    for (const grant of grants) this.#records.run(takeGrant, grant)
    for (const one of suppressions) this.#records.run(takeSuppression, one)
    for (const one of suspensions) this.#records.run(takeSuspension, one)
    for (const one of subscriptions) this.#subscriptions.take(one)
    this.#run.saveRecordsTaken.run({ source, ...taken })
  }

  recordsTaken(source: QueueIdentity): RecordsTaken {
    return this.#run.recordsTaken.get(source) ?? { history: 0, audit: 0 }
  }

  #take(source: QueueIdentity, { origin, moved, staged, content }: Arrival): string {
    const id = this.#run.isFreeId.get({ id: origin.id }) === 1 ? origin.id : (this.#run.reserveIds.get({ count: 1 }) ?? 0)
    this.#run.useId.run(id)
    const message: Message = { ...moved.message, id, contentId: staged ?? id }
    const [record, crc] = encoded(renumbered(moved, message))
    const queueId = queueIdOf(message)
    this.#run.insertOrigin.run(id, source, origin.id, origin.createdAt, queueId, record, crc)
    this.#intake.completeContent(message.contentId, content)
    return queueId
  }

  #addDestination({ name, deadUntil, probeInterval, suspension, siteStatus }: DestinationRecord): void {
    const { by = null, until = null, reason = null } = suspension ?? {}
    this.#run.addDestination.run(name, deadUntil, probeInterval, by, until, reason, fromStatus(siteStatus))
  }

  // --- both

  /** Adds a message to the queue, with its state. */
  #enter(entering: MovedMessage, sharesContent: number): MovedMessage {
    const band = this.#run.bandOf.get(entering.message.class ?? null) ?? NO_CLASS
    const moved = band === NO_CLASS ? withoutClass(entering) : entering
    this.#run.restoreMessage.run(messageRow(moved, sharesContent))
    for (const one of moved.recipients) this.#run.restoreRecipient.run(recipientRow(one, band))
    for (const one of moved.attempts) this.#run.insertAttempt.run(attemptRow(one))
    this.#traffic.note({ kind: 'accepted', at: moved.message.arrivedAt, recipients: liveRecipients(moved) })
    return moved
  }

  #due(entered: readonly MovedMessage[]): DestinationDue[] {
    const waiting = entered.flatMap(({ recipients }) => recipients.filter(({ state }) => state === 'waiting'))
    return [...new Set(waiting.map(({ destination }) => destination))].flatMap((destination) => {
      const dueAt = this.#run.earliestDue.get({ destination }) ?? null
      return dueAt === null ? [] : [{ destination, dueAt }]
    })
  }
}

const targetOf = ({ target }: Pick<MovingRow, 'target'>): MoveTarget => JSON.parse(target) as MoveTarget

const encoded = (moved: MovedMessage): readonly [record: string, crc: number] => {
  const record = JSON.stringify(moved)
  return [record, crc32(record)]
}

function decoded(message: MessageId, { record, crc }: Pick<MovingRow, 'record' | 'crc'>): MovedMessage {
  if (crc32(record) !== crc) throw new Error(`the row of message ${message}, which is between two queues, does not match its checksum`)
  return JSON.parse(record) as MovedMessage
}

function messageRow({ message, placement, deletedAt, why, forcedExpire, warnings, warnAt }: MovedMessage, sharesContent: number) {
  const row = fromMessage(message)
  return {
    ...row,
    shares_content: sharesContent,
    placement,
    deleted_at: deletedAt,
    why: placement === 'corrupt' ? (why ?? 'corrupt in the queue from which it came') : null,
    forced_expire: forcedExpire ? 1 : 0,
    warnings,
    warn_at: warnAt,
    envelope_crc: messageCrc(row),
  }
}

function recipientRow(one: MovedRecipient, band: Band) {
  const { id, destination, address, state, deliveryStarts } = one
  const row = { id, destination, address, notify: fromNotify(one.notify), orcpt: one.orcpt ?? null, band, turn: null }
  const last = fromStatus(one.last)
  return {
    ...row,
    state,
    due_at: one.dueAt,
    kept_due_at: one.keptDueAt,
    expires_at: one.expiresAt,
    steps: one.steps,
    attempts: one.attempts,
    delivery_starts: deliveryStarts,
    suspect: state === 'waiting' && deliveryStarts >= STARTS_UNTIL_SUSPECT ? 1 : 0,
    settled_at: one.settledAt ?? null,
    notice_due: one.noticeDue ?? null,
    last,
    last_crc: outcomeCrc(last),
    envelope_crc: recipientCrc(row),
  }
}

const statements = (db: Database) => ({
  bandOf: db.prepare<[string | null], Band>(moving.bandOf).pluck(),
  giveIdentity: db.prepare(moving.giveIdentity),
  identity: db.prepare<[], number>(moving.identity).pluck(),
  movedTo: db.prepare<[], string>(moving.movedTo).pluck(),
  markMoved: db.prepare<[string]>(moving.markMoved),
  unmarkMoved: db.prepare(moving.unmarkMoved),
  lastMessage: db.prepare<[], MessageId | null>(moving.lastMessage).pluck(),
  countLeaving: db.prepare<[], number>(moving.countLeaving).pluck(),
  countArriving: db.prepare<[], number>(moving.countArriving).pluck(),
  isInUse: db.prepare<[], number>(moving.isInUse).pluck(),
  slice: db.prepare<{ after: MessageId; through: MessageId; size: number }, MessageRow>(moving.sliceToMove),
  insertMoving: db.prepare<[MessageId, number, string, string, number]>(moving.insertMoving),
  movingRows: db.prepare<{ limit: number }, MovingRow>(moving.movingRows),
  movingRow: db.prepare<[MessageId], MovingRow>(moving.movingRow),
  deleteMoving: db.prepare<[MessageId]>(moving.deleteMoving),
  historyAfter: db.prepare<{ after: number; limit: number }, Omit<NumberedHistory, 'record'> & { readonly record: string }>(
    moving.historyAfter,
  ),
  restoreMessage: db.prepare(moving.restoreMessage),
  restoreRecipient: db.prepare(moving.restoreRecipient),
  isFreeId: db.prepare<{ id: MessageId }, 0 | 1>(moving.isFreeId).pluck(),
  useId: db.prepare<[MessageId]>(moving.useId),
  originOf: db.prepare<[QueueIdentity, MessageId, QueueTime], { readonly id: MessageId; readonly queueId: string }>(moving.originOf),
  insertOrigin: db.prepare<[MessageId, QueueIdentity, MessageId, QueueTime, string, string, number]>(moving.insertOrigin),
  arrivingRows: db.prepare<{ source: QueueIdentity; limit: number }, ArrivingRow>(moving.arrivingRows),
  admitOrigin: db.prepare<[QueueTime, MessageId]>(moving.admitOrigin),
  addDestination: db.prepare(moving.addDestination),
  recordsTaken: db.prepare<[QueueIdentity], RecordsTaken>(moving.recordsTaken),
  saveRecordsTaken: db.prepare<RecordsTaken & { readonly source: QueueIdentity }>(moving.saveRecordsTaken),
  recipients: db.prepare<{ message: MessageId }, RecipientRow>(sql.recipientsOf),
  attempts: db.prepare<{ message: MessageId }, AttemptRow>(sql.attemptsOf),
  hasLeased: db.prepare<{ message: MessageId }>(sql.hasLeased),
  anyNoticeDue: db.prepare<{ message: MessageId }>(sql.anyNoticeDue),
  deleteRecipients: db.prepare<{ message: MessageId }>(sql.deleteRecipients),
  deleteAttempts: db.prepare<{ message: MessageId }>(sql.deleteAttempts),
  deleteMessage: db.prepare<[MessageId]>(sql.deleteMessage),
  deleteChunks: db.prepare<{ content: number }>(sql.deleteChunks),
  otherWithContent: db.prepare<{ content: number; message: MessageId }>(sql.otherWithContent),
  insertHistory: db.prepare<[MessageId, QueueTime, string]>(sql.insertHistory),
  indexAnew: db.prepare<[MessageId]>(indexAnew),
  insertAttempt: db.prepare(sql.insertAttempt),
  earliestDue: db.prepare<{ destination: DestinationName }, QueueTime | null>(sql.earliestDue).pluck(),
  reserveIds: db.prepare<{ count: number }, MessageId>(sql.reserveIds).pluck(),
})
