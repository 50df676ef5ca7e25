/**
 * Queue folders for the tests of the SQLite store, removed when the test ends.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { onTestFinished } from 'vitest'

export function folder(): string {
  const directory = mkdtempSync(join(tmpdir(), 'deferd-queue-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** The files of a queue as they are on disk now, in a folder of their own: what a crash would leave. */
export function asAfterACrash(directory: string): string {
  const copy = folder()
  for (const file of ['queue.db', 'queue.db-wal']) cpSync(join(directory, file), join(copy, file))
  return copy
}

/** A queue with the schema of an unreleased program, killed before its write-ahead log was moved into the database. */
export function unreleasedQueue(): string {
  const directory = folder()
  const db = new Database(join(directory, 'queue.db'))
  db.pragma('journal_mode = wal')
  db.exec(readFileSync(join(import.meta.dirname, 'unreleased-schema.sql'), 'utf8'))
  db.pragma('application_id = 0x64666572')
  db.pragma('user_version = 1')
  db.exec(`insert into meta (name, value) values ('openings', 1)`)
  const left = asAfterACrash(directory)
  db.close()
  return left
}
