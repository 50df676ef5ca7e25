/**
 * Queues new mail. The message, its recipients, its schedule and its content are inserted in one transaction. The content is
 * stored in chunks of 64 kB; a long content is staged before that transaction.
 */
import { NO_CLASS } from '../../../config/values/mail-classes.ts'
import { crc32 } from '../../../system/crc32.ts'
import type { Database } from 'better-sqlite3'
import { recipientId, RECIPIENTS_PER_MESSAGE, type ContentId, type Message } from '../../../mail/message.ts'
import { ContentUnreadable } from '../../errors.ts'
import type { NewMessage, NewRecipient, Tried } from '../../new-message.ts'
import { StoreUnavailable } from '../../queue-store.ts'
import { assertChunks, CHUNKS_PER_CONTENT } from '../../chunks.ts'
import { columnsBut } from '../../stored-message.ts'
import { MOVED_AWAY } from '../../move-store.ts'
import { KEEP_REQUEST, repeated } from '../../records/audit-records.ts'
import { CHARGE_QUOTAS } from '../../records/quota-count.ts'
import type { RecordCalls } from '../records/record-calls.ts'
import { messageCrc, outcomeCrc, recipientCrc } from '../file/checksums.ts'
import type { EventRows } from '../outbox/event-rows.ts'
import * as sql from './queries.ts'
import { fromMessage, type RecipientRow } from './rows.ts'
import { accepted } from '../../decisions/series-notes.ts'
import { fromNotify, fromStatus } from '../../stored-values.ts'
import type { TrafficRows } from './traffic-rows.ts'

/** Columns of a message in the order of the parameters of insertMessage. */
const INSERTED = columnsBut()

export class Intake {
  readonly #insertMessage
  readonly #insertRecipient
  readonly #setTried
  readonly #setWarnings
  readonly #insertChunk
  readonly #lastChunk
  readonly #markStaged
  readonly #unmarkStaged
  readonly #deleteChunks
  readonly #insertMaildropFile
  readonly #maildropFiles
  readonly #forgetMaildropFile
  readonly #traffic: TrafficRows
  readonly #records: RecordCalls
  readonly #events: EventRows
  #isRetired = false

  constructor(db: Database, parts: { readonly traffic: TrafficRows; readonly records: RecordCalls; readonly events: EventRows }) {
    this.#traffic = parts.traffic
    this.#records = parts.records
    this.#events = parts.events
    this.#insertMessage = db.prepare(sql.insertMessage)
    this.#insertRecipient = db.prepare(sql.insertRecipient)
    this.#setTried = db.prepare(sql.settleLive)
    this.#setWarnings = db.prepare<[number, null, number]>(sql.setWarnings)
    this.#insertChunk = db.prepare<[number, number, Uint8Array]>(sql.insertChunk)
    this.#lastChunk = db.prepare<{ content: ContentId }, number | null>(sql.lastChunkOf).pluck()
    this.#markStaged = db.prepare<[ContentId]>(sql.markStaged)
    this.#unmarkStaged = db.prepare<[ContentId]>(sql.unmarkStaged)
    this.#deleteChunks = db.prepare<{ content: ContentId }>(sql.deleteChunks)
    this.#insertMaildropFile = db.prepare<[string]>(sql.insertMaildropFile)
    this.#maildropFiles = db.prepare<[], string>(sql.maildropFiles).pluck()
    this.#forgetMaildropFile = db.prepare<[string]>(sql.forgetMaildropFile)
  }

  /** With true, refuses new mail, because the queue was moved to another place. */
  retire(isRetired: boolean): void {
    this.#isRetired = isRetired
  }

  enqueue({
    message,
    band = NO_CLASS,
    recipients,
    content,
    hold = false,
    maildropFile,
    request,
    warnings = 0,
    charges,
    events,
  }: NewMessage): void {
    if (this.#isRetired) throw new StoreUnavailable(MOVED_AWAY)
    if (recipients.length === 0) throw new Error('a message without recipients cannot be queued')
    if (recipients.length > RECIPIENTS_PER_MESSAGE) throw new Error(`a message with ${recipients.length} recipients cannot be queued`)
    if (request !== undefined && !this.#records.run(KEEP_REQUEST, { ...request, at: message.createdAt })) throw repeated(request.key)
    this.#insert(message, hold)
    if (warnings > 0) this.#setWarnings.run(warnings, null, message.id)
    if (maildropFile !== undefined) this.#insertMaildropFile.run(maildropFile)
    recipients.forEach((recipient, position) => this.#enter({ id: recipientId(message.id, position), band }, recipient, hold))
    this.#traffic.note(...accepted(message, recipients))
    if (charges !== undefined) this.#records.run(CHARGE_QUOTAS, charges)
    this.completeContent(message.contentId, content)
    this.#events.keep(events)
  }

  /** Stores a content whose first part may be staged. */
  completeContent(id: ContentId, content: readonly Uint8Array[]): void {
    const wasStaged = this.#unmarkStaged.run(id).changes > 0
    this.#keep(id, wasStaged ? this.#chunksOf(id) : 0, content)
  }

  stage(content: ContentId, from: number, chunks: readonly Uint8Array[]): void {
    this.#markStaged.run(content)
    this.#keep(content, from, chunks)
  }

  unstage(content: ContentId): void {
    if (this.#unmarkStaged.run(content).changes > 0) this.#deleteChunks.run({ content })
  }

  maildropFiles(): readonly string[] {
    return this.#maildropFiles.all()
  }

  forgetMaildropFiles(files: readonly string[]): void {
    for (const file of files) this.#forgetMaildropFile.run(file)
  }

  #insert(message: Message, hold: boolean): void {
    const row = fromMessage(message)
    // Positional parameters take half the time of named parameters.
    this.#insertMessage.run(...INSERTED.map((column) => row[column]), hold ? 'hold' : 'queued', messageCrc(row))
  }

  #enter(
    { id, band }: Pick<RecipientRow, 'id' | 'band'>,
    { address, notify, orcpt, destination, dueAt, expiresAt, leased, tried }: NewRecipient,
    hold: boolean,
  ): void {
    const state = hold ? 'parked' : leased ? 'leased' : 'waiting'
    const deliveryStarts = state === 'leased' ? 1 : 0
    const row = { id, destination, address, notify: fromNotify(notify), orcpt: orcpt ?? null, band, turn: null }
    const crc = recipientCrc(row)
    this.#insertRecipient.run(id, state, destination, address, row.notify, row.orcpt, band, dueAt, expiresAt, deliveryStarts, crc)
    if (tried !== undefined) this.#enterTried(id, state, dueAt, tried)
  }

  #enterTried(id: number, state: string, dueAt: number, { steps, attempts, last }: Tried): void {
    const outcome = fromStatus(last)
    this.#setTried.run(state, dueAt, steps, attempts, outcome, outcomeCrc(outcome), null, id)
  }

  #keep(content: ContentId, from: number, chunks: readonly Uint8Array[]): void {
    assertChunks(chunks)
    let number = from
    for (const chunk of chunks) {
      if (number >= CHUNKS_PER_CONTENT) throw new Error('a content of more than 4 GB cannot be queued')
      this.#insertChunk.run(content * CHUNKS_PER_CONTENT + number++, crc32(chunk), chunk)
    }
  }

  #chunksOf(content: ContentId): number {
    const last = this.#lastChunk.get({ content })
    return typeof last === 'number' ? (last % CHUNKS_PER_CONTENT) + 1 : 0
  }
}

/** Reads contents. Throws ContentUnreadable when the bytes differ from those that were queued. */
export class Contents {
  readonly #chunk
  readonly #lastChunk

  constructor(db: Database) {
    this.#chunk = db.prepare<[number], { crc: number; data: Uint8Array }>(sql.chunkByNumber)
    this.#lastChunk = db.prepare<{ content: ContentId }, number | null>(sql.lastChunkOf).pluck()
  }

  readChunk(content: ContentId, index: number): Uint8Array | undefined {
    const row = this.#chunk.get(content * CHUNKS_PER_CONTENT + index)
    if (row === undefined) {
      if (index > 0 && (this.#lastChunk.get({ content }) ?? -1) < content * CHUNKS_PER_CONTENT + index) return undefined
      throw new ContentUnreadable(`part ${index} of content ${content} is missing`)
    }
    if (crc32(row.data) !== row.crc) throw new ContentUnreadable(`part ${index} of content ${content} is damaged`)
    return row.data
  }
}
