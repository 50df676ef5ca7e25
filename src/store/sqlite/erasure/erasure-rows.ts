/**
 * Erases addresses of mail that has left the queue. Changed and deleted values are overwritten with zeros; at the end the free pages are
 * returned to the file system, and the files are cleared, so that none of the queue has the addresses any more.
 */
import type { Database, Statement } from 'better-sqlite3'
import type { ContentId, MessageId } from '../../../mail/message.ts'
import {
  ERASED_TABLES,
  erasedColumns,
  erasureStatements,
  HISTORY,
  KEPT_CONTENT,
  keyOf,
  type ErasedTable,
  type Stored,
  type StoredRow,
} from '../../erasure/erased-tables.ts'
import { Eraser } from '../../erasure/eraser.ts'
import {
  contentsToRead,
  ERASED_CONTENTS,
  ERASED_ROWS,
  losesContent,
  namesOf,
  progressOf,
  stageOf,
  stepOf,
} from '../../erasure/erasure-slice.ts'
import type { ErasureSlice, ErasureStep } from '../../returned-mail.ts'
import { decodeHistory } from '../../history-record.ts'
import type { QueueTime } from '../../../system/clock.ts'
import { SAVE_ERASURE } from '../../records/erasure.ts'
import { BEGIN_ROUND, COUNT_CHANGED } from '../../records/operation-round.ts'
import type { FileErasure } from '../file/file-erasure.ts'
import type { RecordCalls } from '../records/record-calls.ts'
import * as sql from './erasure-queries.ts'
import { SearchErasure } from '../search/search-erasure.ts'
import type { SearchIndex } from '../search/search-index.ts'

/** Stages after the tables. */
const SEARCH = 'search'
const FILE = 'file'

/** Begin of a slice that waits for cleared files. */
const CLEARING = 'clearing'

const TABLES = ERASED_TABLES.sqlite
const STAGES = [...namesOf(TABLES), SEARCH, FILE]

/** Pages that a slice returns to the file system; each may need a frame in the write-ahead log. */
const PAGES = 128

/** A kept content. */
export interface KeptRow {
  readonly message: MessageId
  readonly content: ContentId
  readonly until: QueueTime
  readonly size: number
}

interface Parts {
  readonly records: RecordCalls
  readonly search: SearchIndex
  readonly departed: { readonly drop: (row: KeptRow) => void }
  readonly file: FileErasure
}

/** A parameter of a number. */
const parameter = (n: number): string => `:p${n}`
const given = (values: readonly Stored[]): Readonly<Record<string, Stored>> =>
  Object.fromEntries(values.map((value, n) => [`p${n + 1}`, value]))

export class ErasureRows {
  readonly #db: Database
  readonly #parts: Parts
  readonly #prepared = new Map<string, Statement<[object], StoredRow>>()
  readonly #kept
  readonly #departure
  readonly #chunks
  readonly #freePages
  readonly #terms: SearchErasure

  constructor(db: Database, parts: Parts) {
    this.#db = db
    this.#parts = parts
    this.#kept = db.prepare<[MessageId, number], KeptRow>(sql.keptAfter)
    this.#departure = db.prepare<[MessageId], { record: string }>(sql.departureOf)
    this.#chunks = db.prepare<{ content: ContentId }, Uint8Array>(sql.chunksOf).pluck()
    this.#terms = new SearchErasure(db)
    this.#freePages = db.prepare<[], number>('pragma freelist_count').pluck()
  }

  /** As DepartedMail.erase. */
  erase(slice: ErasureSlice): ErasureStep | null {
    const { round } = slice
    const { records } = this.#parts
    if (round === null) return this.#step(slice, STAGES.slice(0, STAGES.indexOf(SEARCH)))
    if (!records.run(BEGIN_ROUND, round)) return null
    this.#db.pragma('secure_delete = on')
    try {
      const step = this.#step(slice, STAGES)
      const { changed, erasure } = progressOf(step, slice, round)
      records.run(COUNT_CHANGED, round.operation, changed)
      // The pattern is an address, and the last page with it has to be written before the files are cleared.
      records.run(SAVE_ERASURE, erasure.stage === FILE ? { ...erasure, pattern: '' } : erasure)
      return step
    } finally {
      this.#db.pragma('secure_delete = fast')
    }
  }

  #step(slice: ErasureSlice, stages: readonly string[]): ErasureStep {
    const eraser = new Eraser(slice.terms, slice.key)
    const stage = stageOf(slice, { tables: TABLES, stages })
    switch (stage.kind) {
      case 'contents':
        return this.#contents(slice, eraser, stages)
      case 'rows':
        return this.#erased(stage.table, { slice, eraser, stages })
      case 'own':
        return stage.name === SEARCH ? this.#entries(slice.after, eraser) : this.#file(slice.after)
    }
  }

  #erased(
    table: ErasedTable,
    {
      slice: { after, round },
      eraser,
      stages,
    }: { readonly slice: ErasureSlice; readonly eraser: Eraser; readonly stages: readonly string[] },
  ): ErasureStep {
    const rows = this.#rows(table, after)
    let changed = 0
    for (const row of rows) {
      const columns = erasedColumns(table, row, eraser)
      if (columns === null) continue
      changed++
      if (round !== null) this.#change(table, row, columns)
    }
    const last = JSON.stringify(keyOf(table, rows.at(-1) ?? {}))
    return stepOf(stages, { of: table.name, rows: changed, isLast: rows.length < ERASED_ROWS, last })
  }

  #rows(table: ErasedTable, after: string | null): readonly StoredRow[] {
    const { first, next } = erasureStatements(table, parameter)
    if (after === null) return this.#statement(first).all(given([ERASED_ROWS]))
    return this.#statement(next).all(given([...(JSON.parse(after) as Stored[]), ERASED_ROWS]))
  }

  #change(table: ErasedTable, row: StoredRow, columns: Readonly<Record<string, string | Uint8Array>>): void {
    if (table === HISTORY) this.#parts.search.forget(row['message'] as MessageId)
    const text = erasureStatements(table, parameter).change(Object.keys(columns))
    this.#statement(text).run(given([...keyOf(table, row), ...Object.values(columns)]))
  }

  #contents({ after, round }: ErasureSlice, eraser: Eraser, stages: readonly string[]): ErasureStep {
    const { contents, isLast } = contentsToRead(this.#kept.all(after === null ? 0 : Number(after), ERASED_CONTENTS))
    const dropped = contents.filter((row) => this.#loses(row, eraser))
    if (round !== null) for (const row of dropped) this.#parts.departed.drop(row)
    return stepOf(stages, { of: KEPT_CONTENT, rows: dropped.length, isLast, last: String(contents.at(-1)?.message ?? 0) })
  }

  #loses({ message, content }: KeptRow, eraser: Eraser): boolean {
    const row = this.#departure.get(message)
    const details = row === undefined ? null : decodeHistory(message, row.record)
    return losesContent(details, eraser) || eraser.isIn(Buffer.concat(this.#chunks.all({ content })))
  }

  #entries(after: string | null, eraser: Eraser): ErasureStep {
    const next = this.#terms.slice((address) => eraser.isErased(address), after)
    return { of: SEARCH, rows: 0, next: next === null ? { stage: FILE, after: null } : { stage: SEARCH, after: next }, advances: true }
  }

  /** Returns free pages, as many as there were at the begin, then waits until the files are cleared. */
  #file(after: string | null): ErasureStep {
    const { file } = this.#parts
    const free = this.#freePages.get() ?? 0
    const left = after === null ? free : after === CLEARING ? 0 : Number(after)
    if (left > 0 && free > 0) {
      this.#db.pragma(`incremental_vacuum(${PAGES})`)
      return { of: FILE, rows: 0, next: { stage: FILE, after: String(Math.max(0, left - PAGES)) }, advances: true }
    }
    if (after === CLEARING && file.isDone) return { of: FILE, rows: 0, next: null, advances: true }
    file.request(after !== CLEARING)
    return { of: FILE, rows: 0, next: { stage: FILE, after: CLEARING }, advances: false }
  }

  #statement(text: string): Statement<[object], StoredRow> {
    const known = this.#prepared.get(text) ?? this.#db.prepare<[object], StoredRow>(text)
    this.#prepared.set(text, known)
    return known
  }
}
