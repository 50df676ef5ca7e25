/**
 * Opens the queue's database: its settings, its version, and the assertion that a commit is really synced.
 */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { createPrivate } from '../private-file.ts'
import { QueueFolderUnusable } from '../queue-errors.ts'
import { APPLICATION_ID, migrate } from './migrations.ts'

export type { Database } from 'better-sqlite3'

/** The queue in its folder; `-wal` and `-shm` lie beside it while it is open. */
export const queueFile = (directory: string): string => join(directory, 'queue.db')

const BUSY_TIMEOUT = 5_000

/** Opens the queue for writing and brings it to the current version. Only the owner of the queue may. */
export function openForWriting(directory: string): Database.Database {
  const path = queueFile(directory)
  const db = opening(path, () => {
    createPrivate(path)
    return new Database(path, { timeout: BUSY_TIMEOUT })
  })
  try {
    opening(path, () => {
      assertOurs(db, path)
      settle(db)
      migrate(db, path)
      assertDurable(db)
    })
  } catch (error) {
    db.close()
    throw error
  }
  return db
}

/** A queue that lives as long as the process: the same statements without a file. */
export function openInMemory(): Database.Database {
  const db = new Database(':memory:')
  db.pragma('foreign_keys = on')
  db.pragma('trusted_schema = off')
  migrate(db, ':memory:')
  return db
}

/**
 * better-sqlite3 is built so that a database in WAL mode falls back to synchronous=NORMAL, which loses acknowledged
 * mail in a power cut, and the pragma shows it only after a write. So this writes, looks, and refuses to go on.
 */
export function assertDurable(db: Database.Database): void {
  db.exec(`begin immediate;
    insert into meta (name, value) values ('openings', 1) on conflict (name) do update set value = value + 1;
    commit`)
  const synchronous = db.pragma('synchronous', { simple: true })
  const journal = db.pragma('journal_mode', { simple: true })
  if (synchronous === 2 && journal === 'wal') return
  throw new QueueFolderUnusable(
    `the queue cannot be kept safely here: journal_mode is ${String(journal)}, synchronous is ${String(synchronous)}`,
  )
}

/** page_size and auto_vacuum count only before the first table exists; synchronous only after journal_mode. */
function settle(db: Database.Database): void {
  db.pragma('page_size = 8192')
  db.pragma('auto_vacuum = incremental')
  db.pragma('journal_mode = wal')
  db.pragma('synchronous = full')
  db.pragma('foreign_keys = on')
  db.pragma('trusted_schema = off')
  db.pragma('cell_size_check = on')
  db.pragma('mmap_size = 0')
  db.pragma(`journal_size_limit = ${64 * 1024 * 1024}`)
}

function assertOurs(db: Database.Database, path: string): void {
  const id = db.pragma('application_id', { simple: true })
  if (id === APPLICATION_ID) return
  const tables = db.prepare<[], number>('select count(*) from sqlite_schema').pluck().get()
  if (id !== 0 || tables !== 0) throw new QueueFolderUnusable(`${path} is a database, but not a queue of deferd`)
}

/** Whatever stands in the way of opening becomes one sentence with its cause. */
function opening<T>(path: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    if (!(error instanceof Error) || 'exitCode' in error) throw error
    const damaged = error instanceof Database.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code)
    const advice = damaged ? ': the file is damaged; keep it, and restore the queue from a backup' : ''
    throw new QueueFolderUnusable(`cannot open the queue ${path}: ${error.message}${advice}`, { cause: error })
  }
}
