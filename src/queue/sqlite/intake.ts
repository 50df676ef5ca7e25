/**
 * Mail comes in: contents in chunks of 64 kB, staged early when they are long, and the message with its recipients and
 * schedule in one transaction.
 */
import { crc32 } from 'node:zlib'
import type { Database } from 'better-sqlite3'
import { recipientId, RECIPIENTS_PER_MESSAGE, type BodyId } from '../message.ts'
import { ContentUnreadable } from '../queue-errors.ts'
import type { NewMessage, NewRecipient } from '../store.ts'
import { CHUNKS_PER_BODY } from '../chunks.ts'
import * as sql from './queries.ts'
import { fromNotify } from './rows.ts'

export class Intake {
  readonly #insertMessage
  readonly #insertRecipient
  readonly #insertChunk
  readonly #lastChunk
  readonly #markStaged
  readonly #unmarkStaged
  readonly #deleteChunks

  constructor(db: Database) {
    this.#insertMessage = db.prepare(sql.insertMessage)
    this.#insertRecipient = db.prepare(sql.insertRecipient)
    this.#insertChunk = db.prepare<[number, number, Uint8Array]>(sql.insertChunk)
    this.#lastChunk = db.prepare<{ body: BodyId }, number | null>(sql.lastChunkOf).pluck()
    this.#markStaged = db.prepare<[BodyId]>(sql.markStaged)
    this.#unmarkStaged = db.prepare<[BodyId]>(sql.unmarkStaged)
    this.#deleteChunks = db.prepare<{ body: BodyId }>(sql.deleteChunks)
  }

  enqueue({ message, recipients, content, hold = false }: NewMessage): void {
    if (recipients.length === 0) throw new Error('a message without recipients cannot be queued')
    if (recipients.length > RECIPIENTS_PER_MESSAGE) throw new Error(`a message with ${recipients.length} recipients cannot be queued`)
    this.#insertMessage.run(
      message.id,
      message.createdAt,
      message.arrivedAt,
      message.sender,
      message.size,
      message.body,
      message.ret ?? null,
      message.envid ?? null,
      message.smtputf8 ? 1 : 0,
      message.bodyType ?? null,
      message.messageId ?? null,
      hold ? 'hold' : 'queued',
    )
    recipients.forEach((recipient, position) => this.#enter(recipientId(message.id, position), recipient, hold))
    const wasStaged = this.#unmarkStaged.run(message.body).changes > 0
    this.#keep(message.body, wasStaged ? this.#chunksOf(message.body) : 0, content)
  }

  stage(body: BodyId, from: number, chunks: readonly Uint8Array[]): void {
    this.#markStaged.run(body)
    this.#keep(body, from, chunks)
  }

  unstage(body: BodyId): void {
    if (this.#unmarkStaged.run(body).changes > 0) this.#deleteChunks.run({ body })
  }

  #enter(id: number, { address, notify, orcpt, destination, dueAt, expiresAt, leased }: NewRecipient, hold: boolean): void {
    const state = hold ? 'parked' : leased ? 'leased' : 'waiting'
    const starts = state === 'leased' ? 1 : 0
    this.#insertRecipient.run(id, state, destination, address, fromNotify(notify), orcpt ?? null, dueAt, expiresAt, starts)
  }

  #keep(body: BodyId, from: number, chunks: readonly Uint8Array[]): void {
    let number = from
    for (const chunk of chunks) {
      if (number >= CHUNKS_PER_BODY) throw new Error('a content of more than 4 GB cannot be queued')
      this.#insertChunk.run(body * CHUNKS_PER_BODY + number++, crc32(chunk), chunk)
    }
  }

  #chunksOf(body: BodyId): number {
    const last = this.#lastChunk.get({ body })
    return typeof last === 'number' ? (last % CHUNKS_PER_BODY) + 1 : 0
  }
}

/** Reads contents back, and never hands out bytes that are not those which were queued. */
export class Contents {
  readonly #chunk
  readonly #lastChunk

  constructor(db: Database) {
    this.#chunk = db.prepare<[number], { crc: number; data: Uint8Array }>(sql.chunkByNumber)
    this.#lastChunk = db.prepare<{ body: BodyId }, number | null>(sql.lastChunkOf).pluck()
  }

  read(body: BodyId, index: number): Uint8Array | undefined {
    const row = this.#chunk.get(body * CHUNKS_PER_BODY + index)
    if (row === undefined) {
      if (index > 0 && (this.#lastChunk.get({ body }) ?? -1) < body * CHUNKS_PER_BODY + index) return undefined
      throw new ContentUnreadable(`part ${index} of content ${body} is missing`)
    }
    if (crc32(row.data) !== row.crc) throw new ContentUnreadable(`part ${index} of content ${body} is damaged`)
    return row.data
  }
}
