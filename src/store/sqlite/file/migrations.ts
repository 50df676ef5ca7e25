/**
 * Identifies a queue and migrates it to the current version. Migrations are numbered SQL files. All missing migrations are
 * applied in one transaction, so that an upgrade is atomic. SQLite's user_version holds the version.
 */
import { crc32 } from '../../../system/crc32.ts'
import { resources } from '../../../system/packaged-files.ts'
import type { Database } from 'better-sqlite3'
import { APPLICATION_ID } from './page-file.ts'
import { QueueFolderUnusable, QueueIncompatible, QueueTooNew } from '../../errors.ts'

interface Migration {
  readonly version: number
  readonly sql: string
}

let read: readonly Migration[] | undefined
const migrations = (): readonly Migration[] =>
  (read ??= [...resources('migrations')].map(([file, sql]) => ({ version: Number(file.slice(0, 4)), sql })))

/** The migrations that lead to a version. */
export const migrationsThrough = (version: number): readonly Migration[] => migrations().filter((one) => one.version <= version)

/** Number of the columns that migrations have added to a table after it was made. */
export const addedColumns = (table: string): number =>
  migrations()
    .flatMap(({ sql }) => [...sql.matchAll(/^alter table (\w+) add column/gm)])
    .filter(([, name]) => name === table).length

/** Version of the schema that this release writes. */
export const currentVersion = (): number => migrations().at(-1)?.version ?? 0

export const versionOf = (db: Database): number => Number(db.pragma('user_version', { simple: true }))

/** Whether a database has no tables yet. */
const isEmpty = (db: Database): boolean => db.prepare<[], number>('select count(*) from sqlite_schema').pluck().get() === 0

/**
 * Throws unless the database is empty or is a queue that this program can read or upgrade. The errors are QueueFolderUnusable for
 * a database of another program, QueueTooNew, and QueueIncompatible. Does not write. Returns the version, 0 for an empty database.
 */
export function assertKnown(db: Database, path: string): number {
  const version = versionOf(db)
  const identity = db.pragma('application_id', { simple: true })
  if (identity === 0 && version === 0 && isEmpty(db)) return 0
  if (identity !== APPLICATION_ID) throw new QueueFolderUnusable(`${path} is a database, but not a queue of deferd`)
  const known = currentVersion()
  if (version > known) throw new QueueTooNew(path, version, known, metaValue(db, 'written_by'))
  const fingerprint = metaValue(db, 'schema')
  if (fingerprint !== null && fingerprint !== fingerprintOf(version)) throw new QueueIncompatible(path)
  return version
}

/** Applies the missing migrations. The database must be compatible (see assertCompatible). */
export function migrate(db: Database): void {
  const known = currentVersion()
  if (versionOf(db) === known) return
  const apply = db.transaction(() => {
    const from = versionOf(db)
    for (const { version, sql } of migrations()) if (version > from) db.exec(sql)
    db.prepare(`insert or replace into meta (name, value) values ('schema', ?)`).run(fingerprintOf(known))
    db.pragma(`application_id = ${APPLICATION_ID}`)
    db.pragma(`user_version = ${known}`)
  })
  apply.immediate()
}

/** A migration without comments and layout. */
export const withoutLayout = (sql: string): string => sql.replaceAll(/--.*$/gm, '').replaceAll(/\s+/g, '')

/**
 * CRC-32 of the migrations up to a version, without comments and layout. Unreleased programs used the same version numbers as
 * released ones, so the number alone does not identify a schema.
 */
function fingerprintOf(version: number): number {
  return crc32(
    migrationsThrough(version)
      .map(({ sql }) => withoutLayout(sql))
      .join(';'),
  )
}

/** A value of the table `meta`; undefined when it has none, and null without the table. */
function metaValue(db: Database, name: string): number | undefined | null {
  const hasMeta = db.prepare(`select 1 from sqlite_schema where type = 'table' and name = 'meta'`).get() !== undefined
  return hasMeta ? db.prepare<[string], number>('select value from meta where name = ?').pluck().get(name) : null
}
