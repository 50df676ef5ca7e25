/**
 * A new queue made of the rows that could be read from a damaged one. Each row is verified: a message with a row that does not
 * match its checksum, or with missing parts, is placed in `corrupt`; a message with a row of a page that may be out of date is
 * held.
 */
import type { SalvagedMail } from '../../repair-report.ts'
import { crc32 } from '../../../system/crc32.ts'
import Database from 'better-sqlite3'
import { messageOf, queueIdOf, recipientId, type MessageId } from '../../../mail/message.ts'
import { CHUNKS_PER_CONTENT } from '../../chunks.ts'
import { messageCrc, outcomeCrc, recipientCrc, type MessageEnvelope, type RecipientEnvelope } from './checksums.ts'
import { createDatabase } from './database.ts'
import * as sql from './salvage-queries.ts'
import type { Value } from './records.ts'
import type { FoundRow, Tables } from './row-scan.ts'
import { tableWriters, type TableWriter } from './table-writers.ts'

type Columns = Readonly<Record<string, Value>>

/** Address of a recipient that could not be read (RFC 2606 reserves `invalid`). */
const UNREADABLE_ADDRESS = 'unreadable@invalid'

/** Number of rows in one transaction. */
const ROWS_PER_COMMIT = 20_000

/** The index by which messages are found is made anew. Rows of its tables with the last two names look like rows of `meta`. */
const OF_SEARCH: readonly Value[] = ['search_table', 'search_former', 'search_last', 'search_copied', 'version', 'secure-delete']
/** Names of the rows of `meta` that are not copied, because a new queue has its own. The counts of shares begin anew. */
const OWN_META: readonly Value[] = ['schema', 'generation', 'event_epoch', 'shares_counted', ...OF_SEARCH]

/** Number of ids that are skipped when rows were lost, so that no id of a lost message is used again. */
const IDS_SKIPPED = 100_000

export class SalvagedQueue {
  readonly #db: Database.Database
  readonly #writers: ReadonlyMap<string, TableWriter>
  /** Messages for `corrupt`, with the reasons. */
  readonly #corrupt = new Map<MessageId, string>()
  /** Damaged contents by content id, with the reasons. */
  readonly #damagedContents = new Map<number, string>()
  /** Messages with a row that may be outdated. */
  readonly #uncertain = new Set<MessageId>()
  #highest = 0
  #rows = 0

  /** Creates the file. Throws when it exists. */
  constructor(path: string) {
    this.#db = createDatabase(path)
    this.#db.pragma('ignore_check_constraints = on')
    this.#db.pragma('synchronous = off')
    this.#db.pragma('wal_autocheckpoint = 1000')
    this.#writers = tableWriters(this.#db)
  }

  /** The stored columns of each table, as the schema has them. */
  get tables(): Tables {
    return new Map(
      [...this.#writers].map(([table, { columns, added, rowNumber }]) => [table, { columns, added, hasRowNumber: rowNumber !== null }]),
    )
  }

  /** Adds a row, unless a row with the same key was added before. */
  add({ table, key, values, isCurrent }: FoundRow): void {
    if (this.#rows++ % ROWS_PER_COMMIT === 0) this.#commit()
    const writer = this.#writers.get(table)
    if (writer === undefined) return
    const row: Columns = Object.fromEntries(writer.columns.map(({ name }, n) => [name, values[n] ?? null]))
    if (table === 'message') this.#addMessage({ ...row, id: key }, isCurrent)
    else if (table === 'recipient') this.#addRecipient({ ...row, id: key }, isCurrent)
    else if (table === 'chunk') this.#addChunk({ ...row, id: key })
    else if (table === 'share_usage') return
    else if (table !== 'meta' || !OWN_META.includes(row['name'] ?? null))
      this.#insert(table, writer.rowNumber === null ? row : { ...row, [writer.rowNumber]: key })
  }

  #addMessage(row: Columns, isCurrent: boolean): void {
    const id = Number(row['id'])
    this.#note(id, isCurrent)
    const crc = messageCrc(row as unknown as MessageEnvelope)
    const isSound = crc === row['envelope_crc'] && this.#sumOf('message', row) === row['state_sum']
    if (isSound) return
    this.#corrupt.set(id, 'the envelope does not match its checksum')
    this.#insert(
      'message',
      {
        ...this.#placeholder(id),
        created_at: instant(row['created_at']),
        arrived_at: instant(row['arrived_at']),
        sender: text(row['sender']),
        size: instant(row['size']),
        content_id: instant(row['content_id']) || id,
        envelope_crc: (crc ^ 1) >>> 0,
      },
      true,
    )
  }

  #addRecipient(row: Columns, isCurrent: boolean): void {
    const id = Number(row['id'])
    const message = messageOf(id)
    this.#note(message, isCurrent)
    const crc = recipientCrc(row as unknown as RecipientEnvelope)
    const { last = null } = row
    const isSound =
      crc === row['envelope_crc'] &&
      (last === null || typeof last === 'string') &&
      outcomeCrc(last) === row['last_crc'] &&
      this.#sumOf('recipient', row) === row['schedule_sum']
    if (isSound) return
    this.#corrupt.set(message, `the envelope or schedule of recipient ${id} does not match its checksum`)
    const schedule = { due_at: instant(row['due_at']), expires_at: instant(row['expires_at']) }
    const names = { destination: text(row['destination']), address: text(row['address']) }
    this.#insert('recipient', { ...this.#unreadableRecipient(id), ...names, ...schedule, envelope_crc: (crc ^ 1) >>> 0 }, true)
  }

  #addChunk(row: Columns): void {
    const { id, crc, data } = row
    const content = Math.floor(Number(id) / CHUNKS_PER_CONTENT)
    this.#note(content, true)
    if (!(data instanceof Uint8Array)) return
    if (crc32(data) !== crc) this.#damagedContents.set(content, `part ${Number(id) % CHUNKS_PER_CONTENT} of content ${content} is damaged`)
    this.#insert('chunk', row)
  }

  #note(message: MessageId, isCurrent: boolean): void {
    if (!isCurrent) this.#uncertain.add(message)
    if (Number.isSafeInteger(message) && message < 2 ** 35) this.#highest = Math.max(this.#highest, message)
  }

  /** Inserts a row unchanged; returns the sum that SQLite computes for the row, null when the row cannot be inserted. */
  #sumOf(table: string, row: Columns): number | null {
    return this.#insert(table, row)
  }

  /**
   * Inserts a row; returns the sum that SQLite computes for the row. Null when its key exists already, or when a value violates a
   * constraint.
   */
  #insert(table: string, row: Columns, replaces = false): number | null {
    const writer = this.#writers.get(table)
    if (writer === undefined) return null
    if (replaces) this.#db.prepare(`delete from ${table} where id = ?`).run(row['id'] ?? null)
    try {
      return writer.insert.get(...writer.written.map((name) => row[name] ?? defaultOf(name))) ?? null
    } catch (error) {
      if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_CONSTRAINT')) return null
      throw error
    }
  }

  #placeholder(id: MessageId): Columns {
    const now = this.#db.prepare<[], number>(sql.now).pluck().get() ?? 0
    return {
      id,
      created_at: now,
      arrived_at: now,
      sender: '',
      size: 0,
      content_id: id,
      smtputf8: 0,
      placement: 'corrupt',
      why: 'unreadable',
      envelope_crc: -1,
    }
  }

  #unreadableRecipient(id: number): Columns {
    const now = this.#db.prepare<[], number>(sql.now).pluck().get() ?? 0
    return { id, state: 'parked', destination: 'invalid', address: UNREADABLE_ADDRESS, due_at: now, expires_at: now, envelope_crc: -1 }
  }

  #commit(): void {
    if (this.#db.inTransaction) this.#db.exec('commit')
    this.#db.exec('begin')
  }

  /**
   * Completes the queue: moves messages with damaged or missing parts to `corrupt`, and uncertain ones to `hold`. `anyLost` is true
   * when pages were lost.
   */
  finish(anyLost: boolean): SalvagedMail {
    this.#commit()
    this.#addMissing()
    this.#db.prepare(sql.indexHistory).run()
    for (const id of this.#ids(sql.incompleteContents)) this.#corrupt.set(id, this.#corrupt.get(id) ?? 'a part of the content is missing')
    for (const [content, why] of this.#damagedContents)
      for (const id of this.#ids(sql.messagesWithContent, content)) this.#corrupt.set(id, why)
    for (const [message, why] of this.#corrupt) {
      this.#db.prepare<[string, MessageId]>(sql.toCorrupt).run(why, message)
      this.#db.prepare<{ message: MessageId }>(sql.parkWaiting).run({ message })
    }
    let held = 0
    for (const message of this.#uncertain) {
      if (this.#corrupt.has(message) || this.#db.prepare<[MessageId]>(sql.toHold).run(message).changes === 0) continue
      this.#db.prepare<{ message: MessageId }>(sql.parkWaiting).run({ message })
      held++
    }
    // Ids of rows that were lost are not used again.
    this.#db.prepare<[number]>(sql.raiseLastId).run(this.#highest + (anyLost ? IDS_SKIPPED : 0))
    this.#db.exec('commit')
    this.#assertSound()
    const corrupt = this.#db.prepare<[], { id: MessageId; createdAt: number; why: string }>(sql.corrupt).all()
    return {
      messages: this.#ids(sql.countMessages)[0] ?? 0,
      corrupt: corrupt.map((one) => ({ queueId: queueIdOf(one), why: one.why })),
      held,
    }
  }

  #ids(query: string, ...bound: number[]): readonly number[] {
    return this.#db
      .prepare<number[], number>(query)
      .pluck()
      .all(...bound)
  }

  /** Adds placeholders for missing messages and for messages without recipients. */
  #addMissing(): void {
    for (const content of this.#ids(sql.contentsWithoutMessage)) this.#addPlaceholder(content, 'the envelope is on an unreadable page')
    for (const message of this.#ids(sql.recipientsWithoutMessage)) this.#addPlaceholder(message, 'the envelope is on an unreadable page')
    for (const message of this.#ids(sql.messagesWithoutRecipients)) {
      this.#corrupt.set(message, this.#corrupt.get(message) ?? 'the recipients are on an unreadable page')
      this.#insert('recipient', this.#unreadableRecipient(recipientId(message, 0)))
    }
  }

  #addPlaceholder(message: MessageId, why: string): void {
    this.#insert('message', this.#placeholder(message))
    this.#corrupt.set(message, why)
  }

  #assertSound(): void {
    const found = this.#db.prepare<[], string>('pragma quick_check(3)').pluck().all()
    if (found.join() !== 'ok') throw new Error(`the salvaged queue is not sound: ${found.join('; ')}; this is a bug`)
  }

  /** Copies the write-ahead log into the file and closes the file. */
  close(): void {
    this.#db.pragma('ignore_check_constraints = off')
    this.#db.pragma('wal_checkpoint(truncate)')
    this.#db.close()
  }
}

const instant = (value: Value | undefined): number => (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : 0)
const text = (value: Value | undefined): string => (typeof value === 'string' ? value : '')

/** Value of a column that a row lacks. */
const defaultOf = (column: string): Value => (sql.ZERO.has(column) ? 0 : null)
