/**
 * Records settlements: the new states of leased recipients, their attempts, and the notices due. A message that has neither live
 * recipients nor due notices is removed in the same transaction.
 */
import type { Database } from 'better-sqlite3'
import type { QueueTime } from '../../../system/clock.ts'
import { messageOf, type MessageId, type OwnerId, type RecipientId } from '../../../mail/message.ts'
import type { Settled, Settlement, SettleResult } from '../../recorded-outcomes.ts'
import { isFinal, isOver, settledMail, stateAt } from '../../decisions/settlement.ts'
import type { HistoryWriter } from './history.ts'
import { outcomeCrc } from '../file/checksums.ts'
import type { EventRows } from '../outbox/event-rows.ts'
import * as sql from './queries.ts'
import { KEEP_SESSION } from '../../records/stored-session.ts'
import { attemptRow } from '../../sql/stored-rows.ts'
import { fromStatus } from '../../stored-values.ts'
import type { RecordCalls } from '../records/record-calls.ts'
import type { DepartingRecipientRow, DepartingRow } from './rows.ts'
import type { TrafficRows } from './traffic-rows.ts'

type RecipientPlace = Pick<DepartingRecipientRow, 'state' | 'destination'>

export class Outcomes {
  readonly #message
  readonly #place
  readonly #firstTwo
  readonly #keeperAfter
  readonly #keeperBefore
  readonly #keepersBetween
  readonly #owes
  readonly #settleLive
  readonly #settleFinal
  readonly #attempt
  readonly #setWarnAt
  readonly #departures: HistoryWriter
  readonly #owner: OwnerId
  readonly #traffic: TrafficRows
  readonly #events: EventRows
  readonly #records: RecordCalls

  constructor(
    db: Database,
    parts: {
      readonly departures: HistoryWriter
      readonly traffic: TrafficRows
      readonly events: EventRows
      readonly records: RecordCalls
      readonly owner: OwnerId
    },
  ) {
    this.#records = parts.records
    this.#events = parts.events
    this.#owner = parts.owner
    this.#departures = parts.departures
    this.#traffic = parts.traffic
    this.#message = db.prepare<[MessageId], DepartingRow>(sql.messageToSettle)
    this.#place = db.prepare<[RecipientId], RecipientPlace>(sql.placeOf)
    this.#firstTwo = db.prepare<{ message: MessageId }, DepartingRecipientRow>(sql.firstTwoRecipientsOf)
    this.#keeperAfter = db.prepare<{ message: MessageId; last: RecipientId }>(sql.keeperAfter)
    this.#keeperBefore = db.prepare<{ message: MessageId; first: RecipientId }>(sql.keeperBefore)
    this.#keepersBetween = db.prepare<{ first: RecipientId; last: RecipientId }, number>(sql.keepersBetween).pluck()
    this.#owes = db.prepare<{ message: MessageId }>(sql.anyNoticeDue)
    this.#settleLive = db.prepare(sql.settleLive)
    this.#settleFinal = db.prepare(sql.settleFinal)
    this.#attempt = db.prepare(sql.insertAttempt)
    this.#setWarnAt = db.prepare<[QueueTime | null, MessageId, QueueTime | null]>(sql.setWarnAt)
  }

  settle(settlement: Settlement): SettleResult {
    const { message } = settlement
    const row = this.#message.get(message)
    if (row === undefined || settlement.owner !== this.#owner) return { removed: false, noticeDue: false }
    const sole = settlement.recipients.length === 1 ? this.#soleRecipient(message) : undefined
    let destination = sole?.destination ?? ''
    const settled = settlement.recipients.filter(({ recipient }) => {
      const one = sole === undefined ? this.#placeOf(message, recipient) : sole.id === recipient ? sole : undefined
      if (one?.state === 'leased') destination = one.destination
      return one?.state === 'leased'
    })
    const ids = new Set(settled.map((one) => one.recipient))
    const attempts = settlement.attempts.filter((one) => ids.has(one.recipient))
    this.#traffic.note(...settledMail({ sender: row.sender, destination }, settled, attempts))
    this.#events.keep(settlement.events?.filter(({ recipient }) => ids.has(recipient)))
    if (settled.length > 0) for (const one of settlement.sessions ?? []) this.#records.run(KEEP_SESSION, one)
    if (settled.length > 0 && settled.every(isOver) && (sole !== undefined || !this.#isKeptByOthers(message, ids))) {
      const outcomes = new Map(settled.map((one) => [one.recipient, one]))
      this.#departures.depart(
        row,
        { settled: outcomes, attempts, keepUntil: settlement.keepUntil },
        sole === undefined ? undefined : [sole],
      )
      return { removed: true, noticeDue: false }
    }
    for (const one of settled) this.#record(row, one)
    for (const one of attempts) this.#attempt.run(attemptRow(one))
    const { warnAt } = settlement
    if (warnAt !== undefined && settled.length > 0) this.#setWarnAt.run(warnAt, message, warnAt)
    return { removed: false, noticeDue: this.#owes.get({ message }) !== undefined }
  }

  /**
   * The only recipient of a message; undefined when there are several. Most mail has one recipient, and its settlement needs no
   * statements about others.
   */
  #soleRecipient(message: MessageId): DepartingRecipientRow | undefined {
    const [first, second] = this.#firstTwo.all({ message })
    return second === undefined ? first : undefined
  }

  /** Whether a recipient outside these ids keeps the message in the queue. */
  #isKeptByOthers(message: MessageId, ids: ReadonlySet<RecipientId>): boolean {
    const first = Math.min(...ids)
    const last = Math.max(...ids)
    if (this.#keeperAfter.get({ message, last }) !== undefined) return true
    if (last - first >= ids.size && (this.#keepersBetween.get({ first, last }) ?? 0) > ids.size) return true
    return this.#keeperBefore.get({ message, first }) !== undefined
  }

  #placeOf(message: MessageId, recipient: RecipientId): RecipientPlace | undefined {
    return messageOf(recipient) === message ? this.#place.get(recipient) : undefined
  }

  #record({ placement }: DepartingRow, one: Settled): void {
    const last = fromStatus(one.last)
    if (isFinal(one)) {
      this.#settleFinal.run(one.state, one.at, one.attempts, last, outcomeCrc(last), one.noticeDue ?? null, one.recipient)
      return
    }
    this.#settleLive.run(
      stateAt(placement),
      one.dueAt,
      one.steps,
      one.attempts,
      last,
      outcomeCrc(last),
      one.noticeDue ?? null,
      one.recipient,
    )
  }
}
