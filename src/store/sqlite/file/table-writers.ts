/** Statements that insert rows into the tables of a queue, made from its schema. */
import type Database from 'better-sqlite3'
import { addedColumns } from './migrations.ts'
import * as sql from './salvage-queries.ts'
import type { Value } from './records.ts'
import type { StoredColumn } from './row-scan.ts'

export interface TableWriter {
  readonly columns: readonly StoredColumn[]
  readonly written: readonly string[]
  /** Number of the columns that were added to the table after it was made. */
  readonly added: number
  /** The column that has the row number, which is not in the record; null in a table without row numbers. */
  readonly rowNumber: string | null
  readonly insert: Database.Statement<Value[], number>
}

/** One writer per table, by name. */
export function tableWriters(db: Database.Database): ReadonlyMap<string, TableWriter> {
  const found = db.prepare<[], { name: string; wr: 0 | 1 }>(sql.tables).all()
  return new Map(found.map(({ name, wr }) => [name, tableWriter(db, name, wr === 0)]))
}

function tableWriter(db: Database.Database, table: string, hasRowNumber: boolean): TableWriter {
  const described = db.prepare<[], { name: string; type: string; hidden: number; pk: number }>(`pragma table_xinfo(${table})`).all()
  // SQLite's numbers: 2 is a virtual generated column, which is not in the record; 3 is a stored one, which it computes.
  const columns = described.filter(({ hidden }) => hidden !== 2).map(({ name, type }) => ({ name, type: type.toUpperCase() }))
  const written = described.filter(({ hidden }) => hidden === 0).map(({ name }) => name)
  const sum = described.find(({ hidden }) => hidden === 3)?.name ?? '1'
  const insert = db
    .prepare<Value[], number>(
      `insert or ignore into ${table} (${written.join()}) values (${written.map(() => '?').join()}) returning ${sum}`,
    )
    .pluck()
  const rowNumber = hasRowNumber ? (described.find(({ pk }) => pk === 1)?.name ?? null) : null
  return { columns, written, added: addedColumns(table), insert, rowNumber }
}
