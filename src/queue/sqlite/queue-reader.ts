/**
 * Opens the queue for those who only look: a read-only connection beside a running daemon or without one.
 */
import { statSync } from 'node:fs'
import BetterSqlite from 'better-sqlite3'
import { NoSuchQueue, QueueFolderUnusable, QueueTooNew } from '../queue-errors.ts'
import type { QueueReader } from '../reader.ts'
import { queueFile, type Database } from './database.ts'
import { APPLICATION_ID, currentVersion, versionOf } from './migrations.ts'
import { SqliteReader } from './sqlite-reader.ts'

/** Opens the queue to look at it. Throws NoSuchQueue, QueueTooNew or QueueFolderUnusable. */
export function openQueueReader(directory: string): QueueReader {
  const path = queueFile(directory)
  const db = openForReading(directory, path)
  try {
    assertReadable(db, { directory, path })
    return new SqliteReader(db)
  } catch (error) {
    db.close()
    throw error
  }
}

function openForReading(directory: string, path: string): Database {
  try {
    if (statSync(path, { throwIfNoEntry: false }) === undefined) throw new NoSuchQueue(directory)
    const db = new BetterSqlite(path, { readonly: true, fileMustExist: true, timeout: 5_000 })
    db.pragma('trusted_schema = off')
    // SQLite opens files when they are first read; that is when it fails.
    versionOf(db)
    return db
  } catch (error) {
    if (!(error instanceof Error) || error instanceof NoSuchQueue) throw error
    // To read a write-ahead log SQLite makes a file beside it, unless a running daemon has made it.
    const advice = isCode(error, /^SQLITE_(CANTOPEN|READONLY)/) ? '; ask as the user whom the folder belongs to' : ''
    throw new QueueFolderUnusable(`cannot read the queue ${path}: ${error.message}${advice}`, { cause: error })
  }
}

function assertReadable(db: Database, { directory, path }: { readonly directory: string; readonly path: string }): void {
  const [version, known] = [versionOf(db), currentVersion()]
  if (version === 0) throw new NoSuchQueue(directory)
  if (db.pragma('application_id', { simple: true }) !== APPLICATION_ID) {
    throw new QueueFolderUnusable(`${path} is a database, but not a queue of deferd`)
  }
  if (version > known) throw new QueueTooNew(path, version, known)
  if (version < known)
    throw new QueueFolderUnusable(`the queue ${path} was written by an older deferd: start this one once to bring it up to date`)
}

const isCode = (error: unknown, pattern: RegExp): boolean => error instanceof BetterSqlite.SqliteError && pattern.test(error.code)
