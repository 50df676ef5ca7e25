/**
 * Finds the rows of a damaged database: walks each table from its root, and then looks through all pages for leaves that no
 * readable page points to.
 */
import type { PageFile } from './page-file.ts'
import { PAGE_SIZE } from './page-file.ts'
import { kindOf, treePage, Unreadable, type Value } from './records.ts'

/** A stored column. Its type is that of a strict table (https://www.sqlite.org/stricttables.html). */
export interface StoredColumn {
  readonly name: string
  readonly type: string
}

/** The stored columns of each table. A record lacks the last ones that were added to the table after it was written, at most `added`. */
export type Tables = ReadonlyMap<
  string,
  { readonly columns: readonly StoredColumn[]; readonly added: number; readonly hasRowNumber: boolean }
>

const isWidth = (width: number, { columns, added }: { readonly columns: readonly StoredColumn[]; readonly added: number }): boolean =>
  width <= columns.length && width >= columns.length - added

export interface FoundRow {
  readonly table: string
  readonly key: number
  readonly values: readonly Value[]
  /** False when the page may be outdated or no longer in use, so that the row may belong to mail that has left the queue. */
  readonly isCurrent: boolean
}

/** A page that cannot be read, and the row numbers that it may have held. */
export interface LostPage {
  readonly page: number
  readonly table: string
  readonly after: number
  readonly through: number
}

interface Branch {
  readonly page: number
  readonly after: number
  readonly through: number
}

/** Entries of a pointer map page (https://www.sqlite.org/fileformat2.html#pointer_map_or_ptrmap_pages). */
const POINTERS = Math.floor(PAGE_SIZE / 5)
const isPointerMap = (page: number): boolean => page >= 2 && (page - 2) % (POINTERS + 1) === 0

const SCHEMA_COLUMNS: readonly StoredColumn[] = [
  { name: 'type', type: 'TEXT' },
  { name: 'name', type: 'TEXT' },
  { name: 'tbl_name', type: 'TEXT' },
  { name: 'rootpage', type: 'INTEGER' },
  { name: 'sql', type: 'TEXT' },
]

export class RowScan {
  readonly #file: PageFile
  readonly #tables: Tables
  readonly #seen = new Set<number>()
  readonly lost: LostPage[] = []

  constructor(file: PageFile, tables: Tables) {
    this.#file = file
    this.#tables = tables
  }

  /** All rows, those found from the roots first. */
  *rows(): Generator<FoundRow> {
    yield* this.fromRoots()
    yield* this.#adopt()
  }

  /** Rows found from the roots of their tables. */
  *fromRoots(): Generator<FoundRow> {
    const roots = this.#roots()
    for (const [table, root] of roots) yield* this.#walk(table, { page: root, after: -Infinity, through: Infinity })
    for (const table of this.#tables.keys()) {
      if (!roots.has(table)) this.lost.push({ page: 1, table, after: -Infinity, through: Infinity })
    }
  }

  /** Root pages of the tables, from the schema on page 1. */
  #roots(): ReadonlyMap<string, number> {
    const roots = new Map<string, number>()
    const schema = new RowScan(this.#file, new Map([['sqlite_schema', { columns: SCHEMA_COLUMNS, added: 0, hasRowNumber: true }]]))
    for (const { values } of schema.#walk('sqlite_schema', { page: 1, after: -Infinity, through: Infinity })) {
      const [type, name, , root] = values
      if (type === 'table' && typeof name === 'string' && typeof root === 'number' && this.#tables.has(name)) roots.set(name, root)
    }
    for (const page of schema.#seen) this.#seen.add(page)
    return roots
  }

  *#walk(table: string, root: Branch): Generator<FoundRow> {
    const branches: Branch[] = [root]
    for (let branch = branches.pop(); branch !== undefined; branch = branches.pop()) {
      const read = this.#read(table, branch)
      if (read === null) {
        this.lost.push({ ...branch, table })
        continue
      }
      yield* read.rows
      branches.push(...read.children)
    }
  }

  /** Rows and children of a page; null when it is not a page of this part of the table. */
  #read(
    table: string,
    { page: number, after, through }: Branch,
  ): { readonly rows: readonly FoundRow[]; readonly children: readonly Branch[] } | null {
    const description = this.#tables.get(table)
    if (description === undefined || number < 1 || number > this.#file.count || this.#seen.has(number)) return null
    const page = attempt(() => treePage(this.#file, number))
    if (page === null || page.kind.startsWith('table') !== description.hasRowNumber) return null
    const { hasRowNumber } = description
    const inRange = (key: number) => !hasRowNumber || (key > after && key <= through)
    const cells = page.cells.filter(({ key, values }) => inRange(key) && (values === null || isWidth(values.length, description)))
    if (cells.length === 0 && page.cells.length > 0) return null
    this.#seen.add(number)
    if (page.unreadable > 0 || cells.length < page.cells.length || this.#file.log.lost.has(number))
      this.lost.push({ page: number, table, after, through })
    const rows = cells.flatMap(({ key, values }) =>
      values === null ? [] : [{ table, key, values, isCurrent: this.#file.isCurrent(number) }],
    )
    const children: Branch[] = []
    let from = after
    for (const { child, key } of page.right === 0 ? [] : cells) {
      children.push({ page: child, after: from, through: hasRowNumber ? key : through })
      if (hasRowNumber) from = key
    }
    if (page.right !== 0) children.push({ page: page.right, after: from, through })
    return { rows, children: children.toReversed() }
  }

  /** Rows of leaves that no readable page points to. A leaf is recognised by the number and the types of its columns. */
  *#adopt(): Generator<FoundRow> {
    const free = this.#freePages()
    for (let number = 2; number <= this.#file.count; number++) {
      if (this.#seen.has(number) || free.has(number) || isPointerMap(number)) continue
      const bytes = this.#file.page(number)
      const kind = bytes === undefined ? undefined : kindOf(bytes, number)
      if (kind !== 'table-leaf' && kind !== 'index-leaf') continue
      const use = this.#useOf(number)
      if (use === 'free') continue
      const page = attempt(() => treePage(this.#file, number))
      const table = page === null ? undefined : this.#tableOf(page.cells[0]?.values ?? [], kind === 'table-leaf')
      if (page === null || table === undefined) continue
      this.#seen.add(number)
      const description = this.#tables.get(table)
      const isCurrent = use === 'tree' && this.#file.isCurrent(number)
      for (const { key, values } of page.cells)
        if (values !== null && description !== undefined && isWidth(values.length, description)) yield { table, key, values, isCurrent }
      if (page.unreadable > 0) this.lost.push({ page: number, table, after: -Infinity, through: Infinity })
    }
  }

  /**
   * The table whose columns can have the values; undefined when none or several can. Indexes have three columns or fewer, so a small
   * number identifies no table without row numbers.
   */
  #tableOf(values: readonly Value[], hasRowNumber: boolean): string | undefined {
    if (!hasRowNumber && values.length <= 3) return undefined
    const [table, other] = [...this.#tables].filter(
      ([, one]) => one.hasRowNumber === hasRowNumber && isWidth(values.length, one) && canHave(one.columns, values),
    )
    return other === undefined ? table?.[0] : undefined
  }

  /** Use of a page according to the pointer map. */
  #useOf(number: number): 'free' | 'tree' | 'unknown' {
    const map = number - 2 - ((number - 2) % (POINTERS + 1)) + 2
    const type = this.#file.page(map)?.[(number - map - 1) * 5]
    return type === 2 ? 'free' : type === 5 || type === 1 ? 'tree' : 'unknown'
  }

  #freePages(): ReadonlySet<number> {
    const free = new Set<number>()
    let trunk = this.#file.hasHeader ? (this.#file.page(1)?.readUInt32BE(32) ?? 0) : 0
    while (trunk > 1 && trunk <= this.#file.count && !free.has(trunk)) {
      free.add(trunk)
      const page = this.#file.page(trunk)
      if (page === undefined) break
      const count = Math.min(page.readUInt32BE(4), PAGE_SIZE / 4 - 2)
      for (let n = 0; n < count; n++) free.add(page.readUInt32BE(8 + 4 * n))
      trunk = page.readUInt32BE(0)
    }
    return free
  }
}

const canHave = (columns: readonly StoredColumn[], values: readonly Value[]): boolean =>
  columns.every(({ type }, n) => isOfType(values[n] ?? null, type))

function isOfType(value: Value, type: string): boolean {
  if (value === null) return true
  if (typeof value === 'string') return type === 'TEXT'
  return value instanceof Uint8Array ? type === 'BLOB' : type === 'INTEGER'
}

function attempt<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof Unreadable || error instanceof RangeError) return null
    throw error
  }
}
