/** Opens the database of the queue, applies its settings and migrations, and asserts that its commits are synced meanwhile. */
import { closeSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { normalizeAddress } from '../../../mail/address.ts'
import { parseReply } from '../../../mail/smtp-reply.ts'
import { VERSION, versionNumber } from '../../../system/version.ts'
import { createPrivate } from '../../../system/files/private-file.ts'
import { diskFailure } from '../../folder/disk-failure.ts'
import { isDamage, NoSuchQueue, QueueFolderUnusable } from '../../errors.ts'
import { queueFile } from '../../folder/queue-folder.ts'
import { sync } from './database-files.ts'
import { createMark } from '../durability/synced-mark.ts'
import { assertNeverFilled, assertOwnLog, renewGeneration } from './generation.ts'
import { currentVersion, migrate, versionOf } from './migrations.ts'
import { withLazyStatements } from './lazy-statements.ts'
import { assertCompatible } from './schema-differences.ts'

export type { Database } from 'better-sqlite3'

const BUSY_TIMEOUT = 5_000

/** Adds the functions of filters, whose statements test addresses of earlier versions in their normal form, and the codes of replies. */
const prepared = (db: Database.Database): Database.Database =>
  withLazyStatements(db)
    .function('normal_address', { deterministic: true }, (address) => normalizeAddress(String(address)))
    .function('reply_status', { deterministic: true }, (reply) => parseReply(String(reply))?.status ?? null)

/**
 * Opens the queue for writing and migrates it to the current version. The caller must own the queue. Throws QueueTooNew,
 * QueueIncompatible, SchemaChanged, QueueEmptied, ForeignLog, QueueFolderUnusable, DiskFull or StoreFailed.
 */
export function openForWriting(directory: string): Database.Database {
  const path = queueFile(directory)
  let oldest: number | null = null
  const db = opening(path, () => {
    createPrivate(path)
    oldest = assertOwnLog(path)
    if (statSync(path).size > 0) inspect(path)
    return prepared(new Database(path, { timeout: BUSY_TIMEOUT }))
  })
  try {
    opening(path, () => {
      settle(db)
      // Not sooner: damage that keeps the queue from being opened is in a log of which each commit was synced, when there is no mark.
      createMark(path)
      // SQLite syncs the folder at the first sync of the log that it has made, and ignores the result.
      sync(directory)
      migrate(db)
      assertDurable(db)
      renewGeneration(db, path, oldest)
    })
  } catch (error) {
    db.close()
    throw error
  }
  return db
}

/** Creates an empty queue in a file of any name. Throws when the file exists. */
export function createDatabase(path: string): Database.Database {
  closeSync(openSync(path, 'wx', 0o600))
  const db = prepared(new Database(path))
  settle(db)
  migrate(db)
  return db
}

/** Opens the queue read-only. Throws NoSuchQueue, QueueTooNew, QueueIncompatible, SchemaChanged or QueueFolderUnusable. */
export function openForReading(directory: string): Database.Database {
  const path = queueFile(directory)
  if (statSync(path, { throwIfNoEntry: false }) === undefined) throw new NoSuchQueue(directory)
  let db: Database.Database | undefined
  try {
    db = prepared(new Database(path, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT }))
    db.pragma('trusted_schema = off')
    // 4 MB instead of 16. What is read again soon is in the memory of the operating system.
    db.pragma('cache_size = -4096')
    assertReadable(db, directory)
    return db
  } catch (error) {
    db?.close()
    if (!(error instanceof Error) || 'exitCode' in error) throw error
    if (isHalfCreated(error)) throw new NoSuchQueue(directory)
    // To read a database in WAL mode, SQLite must create a file beside it, unless a running daemon has created the file.
    const denied = error instanceof Database.SqliteError && /^SQLITE_(CANTOPEN|READONLY)/.test(error.code)
    const advice = denied ? '; run the command as the owner of the folder' : ''
    throw new QueueFolderUnusable(`cannot read the queue ${path}: ${error.message}${advice}`, { cause: error })
  }
}

function assertReadable(db: Database.Database, directory: string): void {
  const version = versionOf(db)
  const path = queueFile(directory)
  if (version === 0) assertNeverFilled(path)
  // An owner that was killed during its first start leaves an empty database.
  if (version === 0) throw new NoSuchQueue(directory)
  assertCompatible(db, path)
  if (version < currentVersion())
    throw new QueueFolderUnusable(`the queue ${path} was written by an older deferd: start this deferd once to upgrade it`)
}

let emptyQueue: Buffer | undefined

/** Opens a queue in memory. It uses the same statements and is lost when the process ends. */
export function openInMemory(): Database.Database {
  const db = prepared(new Database(emptyQueue ?? ':memory:'))
  db.pragma('foreign_keys = on')
  db.pragma('trusted_schema = off')
  migrate(db)
  // The migrations take 15 ms of a processor.
  emptyQueue ??= db.serialize()
  db.exec(RECORD_OPENING)
  return db
}

/** Counts an opening, and records the version of this deferd. */
const RECORD_OPENING = `
  insert into meta (name, value) values ('openings', 1) on conflict (name) do update set value = value + 1;
  insert into meta (name, value) values ('written_by', ${versionNumber(VERSION)}) on conflict (name) do update set value = excluded.value`

/** Number of times the queue was opened for writing, including this time. */
export const openingsOf = (db: Database.Database): number =>
  db.prepare<[], number>(`select value from meta where name = 'openings'`).pluck().get() ?? 0

/**
 * Throws QueueFolderUnusable unless commits are synced. better-sqlite3 is compiled with SQLITE_DEFAULT_WAL_SYNCHRONOUS=1, so a
 * database in WAL mode falls back to synchronous=NORMAL, which loses acknowledged mail at a power failure. The pragma reports the
 * fallback only after a write, so the check writes before it reads the pragma.
 */
export function assertDurable(db: Database.Database): void {
  db.exec(`begin immediate; ${RECORD_OPENING}; commit`)
  const synchronous = db.pragma('synchronous', { simple: true })
  const journal = db.pragma('journal_mode', { simple: true })
  if (synchronous === 2 && journal === 'wal') return
  throw new QueueFolderUnusable(
    `the queue cannot be kept safely here: journal_mode is ${String(journal)}, synchronous is ${String(synchronous)}`,
  )
}

/**
 * Lets the store sync its commits itself (durability): SQLite then syncs only what a checkpoint needs, the log before it copies pages, and the
 * header of a log that begins anew. Throws QueueFolderUnusable when the setting has no effect.
 */
export function leaveSyncs(db: Database.Database): void {
  db.pragma('synchronous = normal')
  const synchronous = db.pragma('synchronous', { simple: true })
  if (synchronous !== 1) throw new QueueFolderUnusable(`the queue cannot be kept safely here: synchronous is ${String(synchronous)}`)
}

/**
 * Applies the settings in the order that SQLite requires: page_size and auto_vacuum before the first table exists, synchronous
 * after journal_mode.
 */
export function settle(db: Database.Database, platform: NodeJS.Platform = process.platform): void {
  db.pragma('page_size = 8192')
  db.pragma('auto_vacuum = incremental')
  db.pragma('journal_mode = wal')
  // Disables automatic checkpoints. The store runs them between transactions and handles their errors (checkpoints.ts).
  db.pragma('wal_autocheckpoint = 0')
  db.pragma('synchronous = full')
  // fsync(2) of macOS leaves data in the memory of the disk: F_FULLFSYNC does not (pragma fullfsync of SQLite).
  if (platform === 'darwin') db.exec('pragma fullfsync = on; pragma checkpoint_fullfsync = on')
  db.pragma('foreign_keys = on')
  db.pragma('trusted_schema = off')
  db.pragma('cell_size_check = on')
  db.pragma('mmap_size = 0')
  // Zeros over what is deleted in a page that is written anyway. An erasure (erasure/erasure-rows.ts) would not find it there later.
  db.pragma('secure_delete = fast')
  // The full-text index writes temporary pages. In memory, no other folder has to be writable for the user of the daemon.
  db.pragma('temp_store = memory')
  db.pragma(`journal_size_limit = ${64 * 1024 * 1024}`)
}

/**
 * Refuses an incompatible file over a read-only connection. Closing a writable connection would checkpoint the write-ahead log
 * into a database that deferd must not change.
 */
function inspect(path: string, readonly = true): void {
  const db = new Database(path, { readonly, timeout: BUSY_TIMEOUT })
  try {
    assertCompatible(db, path)
    if (versionOf(db) === 0) assertNeverFilled(path)
  } catch (error) {
    if (!readonly || !isHalfCreated(error)) throw error
    inspect(path, false)
  } finally {
    db.close()
  }
}

/**
 * Whether an error is due to a rollback journal, which is left by a process that ended while it created the database: WAL mode
 * has no such journal. SQLite needs write access to restore the file from the journal.
 */
const isHalfCreated = (error: unknown): boolean => error instanceof Database.SqliteError && error.code === 'SQLITE_READONLY_ROLLBACK'

/**
 * Runs `open` and converts errors without an exit code to DiskFull, StoreFailed or QueueFolderUnusable, with one sentence for the
 * operator.
 */
function opening<T>(path: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    if (!(error instanceof Error) || 'exitCode' in error) throw error
    const failure = diskFailure(dirname(path), error)
    if (failure !== null) throw failure
    const advice = isDamage(error) ? ': the file is damaged; keep it, and restore the queue from a backup' : ''
    throw new QueueFolderUnusable(`cannot open the queue ${path}: ${error.message}${advice}`, { cause: error })
  }
}
