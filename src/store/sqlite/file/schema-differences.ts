/**
 * Compares the tables, indexes, views and triggers of a database with those that the migrations make. A trigger can change mail without
 * a damaged row, and a missing index leaves mail undelivered.
 */
import Database from 'better-sqlite3'
import { SchemaChanged } from '../../errors.ts'
import { assertKnown, migrationsThrough } from './migrations.ts'

/** A row of sqlite_schema. */
interface Entry {
  readonly type: string
  readonly name: string
  readonly tbl_name: string
  readonly sql: string | null
}

/** Normal forms of entries by type and name. */
type Entries = ReadonlyMap<string, string>

/** Without the tables that SQLite keeps for itself: the statistics of ANALYZE, and the numbers of AUTOINCREMENT. */
const ENTRIES = `
  select type, name, tbl_name, sql from sqlite_schema
  where not (type = 'table' and name in ('sqlite_stat1', 'sqlite_stat4', 'sqlite_sequence'))
  order by type, name`

/** Number of differences that a text names. */
const NAMED = 3

/** Throws SchemaChanged, and the errors of assertKnown, unless the database is empty or is a queue of this program as it made it. */
export function assertCompatible(db: Database.Database, path: string): void {
  const version = assertKnown(db, path)
  const differences = version === 0 ? null : schemaDifferences(db, version)
  if (differences !== null) throw new SchemaChanged(path, differences)
}

/** Differences of the schema from that of a version, in words; null without any. */
export function schemaDifferences(db: Database.Database, version: number): string | null {
  const [found, expected] = [entriesOf(db), known.get(version) ?? expectedEntries(version)]
  known.set(version, expected)
  const differences = [
    ...[...expected.keys()].filter((key) => !found.has(key)).map((key) => `${key} is missing`),
    ...[...found].flatMap(([key, form]) => {
      if (!expected.has(key)) return [`${key} is not of deferd`]
      return expected.get(key) === form ? [] : [`${key} differs`]
    }),
  ]
  if (differences.length === 0) return null
  const more = differences.length > NAMED ? ` and ${differences.length - NAMED} more` : ''
  return `${differences.slice(0, NAMED).join(', ')}${more}`
}

/** Results of expectedEntries, which takes 20 ms of a processor. */
const known = new Map<number, Entries>()

/** Entries of the schema that the migrations through a version make. */
function expectedEntries(version: number): Entries {
  const db = new Database(':memory:')
  try {
    for (const { sql } of migrationsThrough(version)) db.exec(sql)
    return entriesOf(db)
  } finally {
    db.close()
  }
}

const entriesOf = (db: Database.Database): Entries =>
  new Map(
    db
      .prepare<[], Entry>(ENTRIES)
      .all()
      .map(({ type, name, tbl_name, sql }) => [`${type} ${printable(name)}`, `${tbl_name}: ${sql === null ? '' : normalForm(sql)}`]),
  )

const printable = (name: string): string => (/^\w+$/.test(name) ? name : JSON.stringify(name))

/** Strings, quoted names, comments, words and other characters of a statement. */
const TOKEN = /'(?:''|[^'])*'|"(?:""|[^"])*"|--[^\n]*|\/\*[\s\S]*?\*\/|\w+|[^\s\w]/g

/** A statement without comments and layout. */
const normalForm = (sql: string): string =>
  (sql.match(TOKEN) ?? []).filter((token) => !token.startsWith('--') && !token.startsWith('/*')).join(' ')
