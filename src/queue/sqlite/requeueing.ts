/**
 * Requeueing: what is still undelivered of a message becomes a new entry with a fresh schedule, the arrival time kept.
 */
import type { Database } from 'better-sqlite3'
import { recipientId, queueIdOf, type MessageId } from '../message.ts'
import type { Operation } from '../store.ts'
import type { Departures } from './departed.ts'
import * as sql from './queries.ts'
import { fromStatus, type MessageRow, type RecipientRow } from './rows.ts'

type Requeue = Extract<Operation, { kind: 'requeue' }>

export class Requeueing {
  readonly #live
  readonly #copyMessage
  readonly #insertRecipient
  readonly #shareBody
  readonly #remove
  readonly #keepers
  readonly #departures: Departures

  constructor(db: Database, departures: Departures) {
    this.#departures = departures
    this.#live = db.prepare<{ message: MessageId }, RecipientRow>(sql.liveRecipientsOf)
    this.#copyMessage = db.prepare(sql.copyMessage)
    this.#insertRecipient = db.prepare(sql.insertRecipient)
    this.#shareBody = db.prepare<[MessageId]>(sql.shareBody)
    this.#remove = db.prepare(sql.removeParked)
    this.#keepers = db.prepare<{ message: MessageId; most: number }, number>(sql.countKeepers).pluck()
  }

  /** Recipients in delivery stay with the old entry and go on by its schedule; both entries read the same content. */
  requeue(row: MessageRow, { now, newId, expiresAt }: Requeue): boolean {
    const message = row.id
    const moving = this.#live.all({ message }).filter((one) => one.state !== 'leased')
    if (moving.length === 0) return false
    this.#copyMessage.run({ message, newId, now })
    this.#shareBody.run(message)
    moving.forEach(({ destination, address, notify, orcpt }, position) => {
      this.#insertRecipient.run(recipientId(newId, position), 'waiting', destination, address, notify, orcpt, now, expiresAt, 0)
    })
    const reason = `requeued as ${queueIdOf({ id: newId, createdAt: now })}`
    this.#remove.run({ message, at: now, last: fromStatus({ status: '2.0.0', reason, stage: 'queue' }) })
    if (this.#keepers.get({ message, most: 1 }) === 0) this.#departures.depart({ ...row, shares_body: 1 })
    return true
  }
}
