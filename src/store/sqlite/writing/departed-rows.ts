/** Contents that stay after their messages have left, and mail that is sent again with them. */
import type { Database } from 'better-sqlite3'
import type { ContentId, MessageId } from '../../../mail/message.ts'
import type { OperationRound } from '../../records/audit-log.ts'
import { DROPPED, resentRecipients, sliceToDrop, type KeptLimits, type Resending } from '../../returned-mail.ts'
import { decodeHistory, encodeHistory } from '../../history-record.ts'
import type { Intake } from './enqueue.ts'
import { departureOf } from '../erasure/erasure-queries.ts'
import type { KeptRow } from '../erasure/erasure-rows.ts'
import * as sql from './queries.ts'
import type { Operated } from '../../records/audit-records.ts'
import { BEGIN_ROUND, END_ROUND } from '../../records/operation-round.ts'
import type { RecordCalls } from '../records/record-calls.ts'

export class DepartedRows {
  readonly #contentOf
  readonly #oldest
  readonly #bytes
  readonly #forget
  readonly #otherWithContent
  readonly #deleteChunks
  readonly #record
  readonly #change
  readonly #share
  readonly #intake: Intake
  readonly #records: RecordCalls

  constructor(db: Database, { intake, records }: { readonly intake: Intake; readonly records: RecordCalls }) {
    this.#intake = intake
    this.#records = records
    this.#contentOf = db.prepare<[MessageId], ContentId>(sql.keptContentOf).pluck()
    this.#oldest = db.prepare<[number], KeptRow>(sql.oldestKept)
    this.#bytes = db.prepare<[], number>(sql.keptBytes).pluck()
    this.#forget = db.prepare<[MessageId]>(sql.forgetKept)
    this.#otherWithContent = db.prepare<{ content: ContentId; message: MessageId }>(sql.otherWithContent)
    this.#deleteChunks = db.prepare<{ content: ContentId }>(sql.deleteChunks)
    this.#record = db.prepare<[MessageId], { seq: number; record: string }>(departureOf)
    this.#change = db.prepare<[string, number]>(sql.changeDeparture)
    this.#share = db.prepare<[MessageId]>(sql.shareContent)
  }

  resend(mail: readonly Resending[], round: OperationRound): readonly boolean[] | null {
    if (!this.#records.run(BEGIN_ROUND, round)) return null
    const sent = mail.map((one) => this.#resend(one))
    const operated = mail.flatMap(({ entry }, n): Operated[] => (sent[n] === true ? [[entry.message.id, 'queued', null]] : []))
    this.#records.run(END_ROUND, round, operated.length, operated)
    return sent
  }

  dropKept(limits: KeptLimits): { readonly bytes: number; readonly more: boolean } {
    const { dropped, bytes, more } = sliceToDrop(this.#oldest.all(DROPPED), this.#bytes.get() ?? 0, limits)
    for (const row of dropped) this.drop(row)
    return { bytes, more }
  }

  #resend(one: Resending): boolean {
    const { message, entry } = one
    const row = this.#record.get(message)
    if (row === undefined || this.#contentOf.get(message) !== entry.message.contentId) return false
    const record = decodeHistory(message, row.record)
    const recipients = resentRecipients(record.recipients, one)
    if (recipients === null) return false
    this.#change.run(encodeHistory({ ...record, recipients }), row.seq)
    this.#intake.enqueue(entry)
    this.#share.run(entry.message.id)
    return true
  }

  /** Deletes a content unless another message has it. */
  drop({ message, content }: KeptRow): void {
    this.#forget.run(message)
    if (this.#otherWithContent.get({ content, message }) === undefined) this.#deleteChunks.run({ content })
  }
}
