/**
 * Requeueing (`postsuper -r`): the undelivered recipients of a message move to a new message with the same arrival time and a
 * schedule that starts again.
 */
import type { Database } from 'better-sqlite3'
import { recipientId, type MessageId } from '../../../mail/message.ts'
import { requeuedStatus, type Requeue } from '../../decisions/operation-changes.ts'
import type { HistoryWriter } from './history.ts'
import { isSoundMessage, isSoundRecipient, messageCrc, outcomeCrc, recipientCrc } from '../file/checksums.ts'
import * as sql from './queries.ts'
import { fromStatus } from '../../stored-values.ts'
import { type MessageRow, type RecipientRow } from './rows.ts'

export class Requeueing {
  readonly #live
  readonly #copyMessage
  readonly #insertRecipient
  readonly #shareContent
  readonly #remove
  readonly #keepers
  readonly #departures: HistoryWriter

  constructor(db: Database, departures: HistoryWriter) {
    this.#departures = departures
    this.#live = db.prepare<{ message: MessageId }, RecipientRow>(sql.liveRecipientsOf)
    this.#copyMessage = db.prepare(sql.copyMessage)
    this.#insertRecipient = db.prepare(sql.insertRecipient)
    this.#shareContent = db.prepare<[MessageId]>(sql.shareContent)
    this.#remove = db.prepare(sql.removeParked)
    this.#keepers = db.prepare<{ message: MessageId; most: number }, number>(sql.countKeepers).pluck()
  }

  /**
   * Requeues the waiting and parked recipients. Recipients in delivery stay with the old message and its schedule; both messages
   * then share the content. Returns false when there is nothing to requeue.
   */
  requeue(row: MessageRow, operation: Requeue): boolean {
    const { now, newId, expiresAt } = operation
    const message = row.id
    const dueAt = Math.max(now, row.not_before ?? now)
    const moving = this.#live.all({ message }).filter((one) => one.state !== 'leased')
    if (moving.length === 0) return false
    // A damaged row stays damaged: its copy gets no checksum of its own.
    const crc = isSoundMessage(row) ? messageCrc({ ...row, id: newId, created_at: now }) : row.envelope_crc
    this.#copyMessage.run({ message, newId, now, crc })
    this.#shareContent.run(message)
    moving.forEach((one, position) => {
      const { destination, address, notify, orcpt, band } = one
      const id = recipientId(newId, position)
      const recipient = isSoundRecipient(one) ? recipientCrc({ ...one, id, turn: null }) : one.envelope_crc
      this.#insertRecipient.run(id, 'waiting', destination, address, notify, orcpt, band, dueAt, expiresAt, 0, recipient)
    })
    const last = fromStatus(requeuedStatus(operation))
    this.#remove.run({ message, at: now, last, lastCrc: outcomeCrc(last) })
    if (this.#keepers.get({ message, most: 1 }) === 0) this.#departures.depart({ ...row, shares_content: 1 })
    return true
  }
}
