/** Erases addresses of mail that has left the queue. The dead rows and the write-ahead log of the database have them until it removes those. */
import type { MessageId } from '../../../mail/message.ts'
import type { ErasureSlice, ErasureStep } from '../../returned-mail.ts'
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
import { Eraser } from '../../erasure/eraser.ts'
import { decodeHistory } from '../../history-record.ts'
import { SAVE_ERASURE } from '../../records/erasure.ts'
import { BEGIN_ROUND, COUNT_CHANGED } from '../../records/operation-round.ts'
import { forgetEntries } from '../search/search-queries.ts'
import { int8s, storableText } from '../session/arrays.ts'
import type { Parameter } from '../session/database-connection.ts'
import { runRecord } from '../session/record-calls.ts'
import * as sql from '../writing/departed-queries.ts'
import type { Send, Transaction } from '../writing/write-transaction.ts'
import { dropContents, type KeptRow } from './departed-writer.ts'

const TABLES = ERASED_TABLES.postgres
const STAGES = namesOf(TABLES)

const parameter = (n: number): string => `$${n}`

const parameterOf = (value: Stored): Parameter =>
  typeof value === 'string' ? storableText(value) : value instanceof Uint8Array ? Buffer.from(value) : value

export class ErasureWriter {
  erase: Send<'erase'> = (tx, calls) => ({ answers: Promise.all(calls.map(([slice]) => erased(tx, slice))), isLast: false })
}

async function erased(tx: Transaction, slice: ErasureSlice): Promise<ErasureStep | null> {
  const { round } = slice
  if (round === null) return step(tx, slice)
  if (!(await runRecord(tx, BEGIN_ROUND, round))) return null
  const done = await step(tx, slice)
  const { changed, erasure } = progressOf(done, slice, round)
  await Promise.all([runRecord(tx, COUNT_CHANGED, round.operation, changed), runRecord(tx, SAVE_ERASURE, erasure)])
  return done
}

function step(tx: Transaction, slice: ErasureSlice): Promise<ErasureStep> {
  const eraser = new Eraser(slice.terms, slice.key)
  const stage = stageOf(slice, { tables: TABLES, stages: STAGES })
  switch (stage.kind) {
    case 'contents':
      return contents(tx, slice, eraser)
    case 'rows':
      return rowsOf(tx, { table: stage.table, slice, eraser })
    case 'own':
      throw new Error(`PostgreSQL has no stage ${stage.name} of an erasure`)
  }
}

async function rowsOf(
  tx: Transaction,
  { table, slice, eraser }: { readonly table: ErasedTable; readonly slice: ErasureSlice; readonly eraser: Eraser },
): Promise<ErasureStep> {
  const { first, next, change } = erasureStatements(table, parameter)
  const { after, round } = slice
  const place = after === null ? [] : (JSON.parse(after) as readonly Stored[])
  // A plan reads alone. Otherwise no other transaction changes a row between its reading and its change.
  const text = `${after === null ? first : next}${round === null ? '' : ' for update'}`
  const rows = await tx.query<StoredRow>(text, [...place.map(parameterOf), ERASED_ROWS])
  const changed = rows.flatMap((row) => {
    const columns = erasedColumns(table, row, eraser)
    return columns === null ? [] : [{ row, columns }]
  })
  if (round !== null && changed.length > 0) {
    if (table === HISTORY) await tx.query(forgetEntries, [int8s(changed.map(({ row }) => row['message'] as MessageId))])
    await Promise.all(
      changed.map(({ row, columns }) =>
        tx.query(change(Object.keys(columns)), [...keyOf(table, row), ...Object.values(columns)].map(parameterOf)),
      ),
    )
  }
  const last = JSON.stringify(keyOf(table, rows.at(-1) ?? {}))
  return stepOf(STAGES, { of: table.name, rows: changed.length, isLast: rows.length < ERASED_ROWS, last })
}

async function contents(tx: Transaction, { after, round }: ErasureSlice, eraser: Eraser): Promise<ErasureStep> {
  const following = await tx.query<KeptRow>(sql.keptAfter, [after === null ? 0 : Number(after), ERASED_CONTENTS])
  const { contents: read, isLast } = contentsToRead(following)
  const dropped: KeptRow[] = []
  for (const row of read) if (await loses(tx, row, eraser)) dropped.push(row)
  if (round !== null && dropped.length > 0) await dropContents(tx, dropped)
  return stepOf(STAGES, { of: KEPT_CONTENT, rows: dropped.length, isLast, last: String(read.at(-1)?.message ?? 0) })
}

async function loses(tx: Transaction, { message, content }: KeptRow, eraser: Eraser): Promise<boolean> {
  const [[row], chunks] = await Promise.all([
    tx.query<{ record: string }>(sql.departureOf, [message]),
    tx.query<{ data: Uint8Array }>(sql.chunksOf, [content]),
  ])
  const details = row === undefined ? null : decodeHistory(message, row.record)
  return losesContent(details, eraser) || eraser.isIn(Buffer.concat(chunks.map(({ data }) => data)))
}
