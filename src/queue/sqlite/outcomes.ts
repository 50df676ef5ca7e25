/**
 * Outcomes: what became of leased recipients, the attempts that tell of it, and the debts that follow. When nothing
 * keeps a message any more it leaves in the same transaction.
 */
import type { Database } from 'better-sqlite3'
import type { Instant } from '../../mail/clock.ts'
import { messageOf, type MessageId, type RecipientId, type RecipientState } from '../message.ts'
import type { AttemptRecord, Settled, Settlement, SettleResult } from '../store.ts'
import type { Departures } from './departed.ts'
import * as sql from './queries.ts'
import { fromStatus, type MessageRow } from './rows.ts'

type Final = Exclude<Settled, { state: 'waiting' }>

export class Outcomes {
  readonly #message
  readonly #state
  readonly #keeperAfter
  readonly #keeperBefore
  readonly #keepersBetween
  readonly #owes
  readonly #settleLive
  readonly #settleFinal
  readonly #attempt
  readonly #setWarnAt
  readonly #departures: Departures

  constructor(db: Database, departures: Departures) {
    this.#departures = departures
    this.#message = db.prepare<[MessageId], MessageRow>(sql.messageById)
    this.#state = db.prepare<[RecipientId], RecipientState>(sql.stateOf).pluck()
    this.#keeperAfter = db.prepare<{ message: MessageId; last: RecipientId }>(sql.keeperAfter)
    this.#keeperBefore = db.prepare<{ message: MessageId; first: RecipientId }>(sql.keeperBefore)
    this.#keepersBetween = db.prepare<{ first: RecipientId; last: RecipientId }, number>(sql.keepersBetween).pluck()
    this.#owes = db.prepare<{ message: MessageId }>(sql.owesAnything)
    this.#settleLive = db.prepare(sql.settleLive)
    this.#settleFinal = db.prepare(sql.settleFinal)
    this.#attempt = db.prepare(sql.insertAttempt)
    this.#setWarnAt = db.prepare<[Instant | null, MessageId, Instant | null]>(sql.setWarnAt)
  }

  settle(settlement: Settlement): SettleResult {
    const { message } = settlement
    const row = this.#message.get(message)
    if (row === undefined) return { removed: false, indebted: false }
    const settled = settlement.recipients.filter((one) => this.#isLeased(message, one.recipient))
    const ids = new Set(settled.map((one) => one.recipient))
    const attempts = settlement.attempts.filter((one) => ids.has(one.recipient))
    if (settled.length > 0 && settled.every(isOver) && !this.#isKeptByOthers(message, ids)) {
      this.#departures.depart(row, { settled: new Map(settled.map((one) => [one.recipient, one])), attempts })
      return { removed: true, indebted: false }
    }
    for (const one of settled) this.#record(row, one)
    for (const one of attempts) this.#remember(one)
    const { warnAt } = settlement
    if (warnAt !== undefined && settled.length > 0) this.#setWarnAt.run(warnAt, message, warnAt)
    return { removed: false, indebted: this.#owes.get({ message }) !== undefined }
  }

  /** Does any recipient but these keep the message in the queue? */
  #isKeptByOthers(message: MessageId, ids: ReadonlySet<RecipientId>): boolean {
    const first = Math.min(...ids)
    const last = Math.max(...ids)
    if (this.#keeperAfter.get({ message, last }) !== undefined) return true
    if (last - first >= ids.size && (this.#keepersBetween.get({ first, last }) ?? 0) > ids.size) return true
    return this.#keeperBefore.get({ message, first }) !== undefined
  }

  #isLeased(message: MessageId, recipient: RecipientId): boolean {
    return messageOf(recipient) === message && this.#state.get(recipient) === 'leased'
  }

  /** What is still alive of a held, corrupt or deleted message is parked, where it would have waited. */
  #record({ placement }: MessageRow, one: Settled): void {
    if (isFinal(one)) {
      this.#settleFinal.run(one.state, one.at, one.attempts, fromStatus(one.last), one.debt ?? null, one.recipient)
      return
    }
    const state = placement === 'queued' ? 'waiting' : 'parked'
    this.#settleLive.run(state, one.dueAt, one.steps, one.attempts, fromStatus(one.last), one.debt ?? null, one.recipient)
  }

  #remember({ recipient, at, relay, outcome, status, delays }: AttemptRecord): void {
    this.#attempt.run({ recipient, at, relay, outcome, status: JSON.stringify(status), delays: JSON.stringify(delays) })
  }
}

const isFinal = (one: Settled): one is Final => one.state !== 'waiting'

/** Final, and nobody is owed a word. */
const isOver = (one: Settled): one is Final => isFinal(one) && one.debt === undefined
