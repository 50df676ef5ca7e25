/**
 * Opens the queue for those who only look: a read-only connection beside a running daemon or without one.
 */
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import BetterSqlite from 'better-sqlite3'
import { NoSuchQueue, QueueFolderUnusable, QueueTooNew } from '../queue-errors.ts'
import type { QueueReader } from '../reader.ts'
import { queueFile, type Database } from './database.ts'
import { APPLICATION_ID, currentVersion, versionOf } from './migrations.ts'
import { SqliteReader } from './sqlite-reader.ts'

/** Opens the queue to look at it. Throws NoSuchQueue, QueueTooNew or QueueFolderUnusable. */
export function openQueueReader(directory: string): QueueReader {
  const path = queueFile(directory)
  if (!existsSync(path)) throw new NoSuchQueue(directory)
  const db = openForReading(path)
  try {
    assertReadable(db, { directory, path })
    return new SqliteReader(db)
  } catch (error) {
    db.close()
    throw error
  }
}

function openForReading(path: string): Database {
  try {
    const db = new BetterSqlite(path, { readonly: true, fileMustExist: true, timeout: 5_000 })
    db.pragma('trusted_schema = off')
    db.pragma('user_version')
    return db
  } catch (error) {
    // Where we may not write, SQLite cannot make the -shm file it reads a log with; without a log none is needed.
    if (isCode(error, /^SQLITE_(CANTOPEN|READONLY)/) && !existsSync(`${path}-wal`)) {
      return new BetterSqlite(`${pathToFileURL(path).href}?immutable=1`, { readonly: true })
    }
    throw unreadable(path, error)
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

const unreadable = (path: string, error: unknown): unknown =>
  error instanceof Error ? new QueueFolderUnusable(`cannot read the queue ${path}: ${error.message}`, { cause: error }) : error
