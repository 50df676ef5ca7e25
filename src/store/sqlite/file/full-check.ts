/**
 * The full check of a queue: SQLite's own check of all pages and indexes, the checksums of all rows and contents, and rows that
 * lack their message, recipients or content. Reads the whole file, as of one moment.
 */
import { crc32 } from '../../../system/crc32.ts'
import type { Database } from 'better-sqlite3'
import { messageOf, queueIdOf } from '../../../mail/message.ts'
import { CHUNKS_PER_CONTENT } from '../../chunks.ts'
import { isDamage } from '../../errors.ts'
import * as salvage from './salvage-queries.ts'
import { isSoundMessage, isSoundRecipient, type SummedMessage, type StoredRecipient } from './checksums.ts'

/** Maximum number of damages that SQLite's check reports. */
const MOST = 100

interface ChunkRow {
  readonly id: number
  readonly crc: number
  readonly data: Uint8Array
}

/** Damages of a queue, one sentence each; none when it is sound. */
export function damagesOf(db: Database): readonly string[] {
  db.exec('begin')
  try {
    return [
      ...guarded('structure', () => structure(db)),
      ...guarded('messages', () => messages(db)),
      ...guarded('recipients', () => recipients(db)),
      ...guarded('contents', () => contents(db)),
      ...guarded('messages', () => missing(db)),
    ]
  } finally {
    // A commit would report the damage again.
    db.exec('rollback')
  }
}

/** Findings of a part of the check; a page that SQLite refuses to read ends the part with a finding. */
function guarded(part: string, check: () => readonly string[]): readonly string[] {
  try {
    return check()
  } catch (error) {
    if (!isDamage(error)) throw error
    return [`${part}: ${error instanceof Error ? error.message : String(error)}`]
  }
}

function structure(db: Database): readonly string[] {
  const found = db.prepare<[], string>(`pragma integrity_check(${MOST})`).pluck().all()
  return found.join() === 'ok' ? [] : found
}

/** Messages whose row does not match its checksum, except messages in `corrupt`, which are known already. */
function messages(db: Database): readonly string[] {
  const found: string[] = []
  for (const row of db.prepare<[], SummedMessage>(`select * from message where placement <> 'corrupt' order by id`).iterate())
    if (!isSoundMessage(row))
      found.push(`message ${queueIdOf({ id: row.id, createdAt: row.created_at })}: the envelope does not match its checksum`)
  return found
}

function recipients(db: Database): readonly string[] {
  const found: string[] = []
  const corrupt = corruptMessages(db)
  for (const row of db.prepare<[], StoredRecipient>('select * from recipient order by id').iterate())
    if (!isSoundRecipient(row) && !corrupt.has(messageOf(row.id)))
      found.push(`recipient ${row.id} of message ${messageOf(row.id)}: the envelope or schedule does not match its checksum`)
  return found
}

function contents(db: Database): readonly string[] {
  const found: string[] = []
  const corrupt = corruptMessages(db)
  for (const { id, crc, data } of db.prepare<[], ChunkRow>('select id, crc, data from chunk order by id').iterate()) {
    const content = Math.floor(id / CHUNKS_PER_CONTENT)
    if (crc32(data) !== crc && !corrupt.has(content)) found.push(`part ${id % CHUNKS_PER_CONTENT} of content ${content} is damaged`)
  }
  return found
}

function missing(db: Database): readonly string[] {
  const corrupt = corruptMessages(db)
  const report = (query: string, what: string): readonly string[] =>
    db
      .prepare<[], number>(query)
      .pluck()
      .all()
      .filter((id) => !corrupt.has(id))
      .map((id) => `message ${id}: ${what}`)
  return [
    ...report(salvage.incompleteContents, 'a part of the content is missing'),
    ...report(salvage.recipientsWithoutMessage, 'the envelope is missing'),
    ...report(salvage.messagesWithoutRecipients, 'the recipients are missing'),
    ...report(salvage.contentsWithoutMessage, 'the content has no envelope'),
  ]
}

/** Ids of the messages in `corrupt`, together with the ids of their contents. */
const corruptMessages = (db: Database): ReadonlySet<number> =>
  new Set(
    db
      .prepare<[], number>(
        `select id from message where placement = 'corrupt' union select content_id from message where placement = 'corrupt'`,
      )
      .pluck()
      .all(),
  )
