/**
 * Brings a queue to the current version: numbered SQL files, all of them in one transaction, so that an upgrade
 * happens as a whole or not at all. The version is SQLite's user_version.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Database } from 'better-sqlite3'
import { QueueTooNew } from '../queue-errors.ts'

/** 'dfer': tells `file` and us what the database is. */
export const APPLICATION_ID = 0x64666572

/** The package's `migrations` folder, seen alike from src/queue/sqlite and from dist/queue/sqlite. */
const FOLDER = fileURLToPath(new URL('../../../migrations/', import.meta.url))

interface Migration {
  readonly version: number
  readonly file: string
}

export function migrations(): readonly Migration[] {
  return readdirSync(FOLDER)
    .filter((file) => /^\d{4}_.*\.sql$/.test(file))
    .toSorted()
    .map((file) => ({ version: Number(file.slice(0, 4)), file }))
}

/** The version this program writes. */
export const currentVersion = (): number => migrations().at(-1)?.version ?? 0

export const versionOf = (db: Database): number => Number(db.pragma('user_version', { simple: true }))

export function migrate(db: Database, path: string): void {
  const known = currentVersion()
  if (versionOf(db) > known) throw new QueueTooNew(path, versionOf(db), known)
  if (versionOf(db) === known) return
  const apply = db.transaction(() => {
    const from = versionOf(db)
    for (const { version, file } of migrations()) {
      if (version > from) db.exec(readFileSync(join(FOLDER, file), 'utf8'))
    }
    db.pragma(`application_id = ${APPLICATION_ID}`)
    db.pragma(`user_version = ${known}`)
  })
  apply.immediate()
}
