/** Opens the queue in a folder, either as its owner, which alone may change it, or read-only, beside the owner or without one. */
import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { NoSuchQueue } from '../errors.ts'
import { takeOwnership, type Ownership } from '../folder/owner-lock.ts'
import type { QueueReader } from '../queue-reader.ts'
import { ANSWERS_AT_ONCE, type StoreSides } from '../store-health.ts'
import type { MovableStore } from '../move-store.ts'
import { directReader } from '../reader-methods.ts'
import { queueFile } from '../folder/queue-folder.ts'
import { openForReading } from './file/database.ts'
import { damagesOf } from './file/full-check.ts'
import { openInlineStore, type StoreOptions } from './clients/inline-store.ts'
import { movedTo } from './moving/move-queries.ts'
import type { RecoveryReport } from './core/recovery.ts'
import { copyDatabase } from './file/restore.ts'
import { createSqliteReader } from './reading/sqlite-reader.ts'
import { openWorkerReader } from './clients/worker-reader.ts'
import { openWorkerStore } from './clients/worker-store.ts'

export { openInlineStore } from './clients/inline-store.ts'

/** The queue opened by its owner. */
export interface OwnedStore {
  readonly store: MovableStore
  readonly reader: QueueReader
  readonly sides: StoreSides
  /** Changes that the recovery made to the state left by the previous owner. */
  readonly recovery: RecoveryReport
  /** Notes that this process answers commands from now on, after `isStarting`. */
  readonly started: () => void
  /** Closes the reader and the store, then releases the ownership. */
  readonly close: () => Promise<void>
}

interface OwnerOptions extends StoreOptions {
  /** True to write and read in worker threads, for a process that must not block. Otherwise both run in the caller's thread. */
  readonly threads: boolean
  /** True to create a missing queue and its folder. */
  readonly create: boolean
  /** True when this process has the lock of the folder for another purpose, and keeps it. */
  readonly isOwned?: boolean | undefined
  /** True for a daemon, which answers commands from `started` on. */
  readonly isStarting?: boolean
}

const OWNED_BEFORE: Ownership = { started: () => undefined, release: () => undefined }

/**
 * Takes ownership of the queue, opens it and recovers it. Rejects with NoSuchQueue, QueueInUse or an error of `openCore`
 * (QueueTooNew, QueueIncompatible, SchemaChanged, QueueFolderUnusable, QueueEmptied, ForeignLog, DiskFull, StoreFailed); the ownership is then
 * released.
 */
export async function openStore(
  directory: string,
  { threads, create, isOwned = false, isStarting = false, ...options }: OwnerOptions,
): Promise<OwnedStore> {
  if (!create && !existsSync(queueFile(directory))) throw new NoSuchQueue(directory)
  const ownership = isOwned ? OWNED_BEFORE : takeOwnership(directory, isStarting)
  try {
    const { store, reader, sides, recovery } = await (threads ? openInThreads(directory, options) : openInline(directory, options))
    const close = async (): Promise<void> => {
      await reader.close()
      await store.close()
      ownership.release()
    }
    return { store, reader, sides, recovery, started: () => ownership.started(), close }
  } catch (error) {
    ownership.release()
    throw error
  }
}

type Opened = Omit<OwnedStore, 'started' | 'close'>

async function openInThreads(directory: string, options: StoreOptions): Promise<Opened> {
  const { store, recovery, side: writer } = await openWorkerStore({ directory }, options)
  const reader = openWorkerReader(directory)
  return { store, recovery, reader, sides: { reader: reader.side, writer } }
}

async function openInline(directory: string, options: StoreOptions): Promise<Opened> {
  return { ...(await openInlineStore({ directory }, options)), sides: { reader: ANSWERS_AT_ONCE, writer: ANSWERS_AT_ONCE } }
}

/** The queue opened by a process that does not own it. */
interface ReadOnlyStore {
  readonly reader: QueueReader
  /** Copies one consistent state of the queue to a file and resolves with the file's size in bytes. The file is not synced. */
  copyTo(path: string): Promise<number>
  /** Up to ten defects of the database file; empty when the file is sound. Reads the whole file. */
  defects(): readonly string[]
  /**
   * Damages of pages, indexes, rows and contents, one sentence each; empty when the queue is sound. Reads the whole file, which
   * takes seconds per gigabyte.
   */
  damages(): readonly string[]
  /** Closes the reader and the connection. */
  readonly close: () => Promise<void>
}

/** Opens the queue to read it. Throws NoSuchQueue, QueueTooNew, QueueIncompatible, SchemaChanged or QueueFolderUnusable. */
export function openStoreReadOnly(directory: string): ReadOnlyStore {
  const db = openForReading(directory)
  const reader = directReader(createSqliteReader(db))
  return {
    reader,
    copyTo: (path) => copyDatabase(db, path, 'delete'),
    defects: () => defectsOf(db),
    damages: () => damagesOf(db),
    close: () => reader.close(),
  }
}

/** Whether the queue in a folder was moved to another place as a whole. False also for a queue that cannot be read. */
export function wasMoved(directory: string): boolean {
  try {
    const db = openForReading(directory)
    try {
      return db.prepare(movedTo).get() !== undefined
    } finally {
      db.close()
    }
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  }
}

function defectsOf(db: Database.Database): readonly string[] {
  try {
    const found = db.prepare<[], string>('pragma quick_check(10)').pluck().all()
    if (found.join() !== 'ok') return found
  } catch (error) {
    // SQLite's check ends with an error, not with a row, at a page that cannot be read.
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_CORRUPT')) return [error.message]
    throw error
  }
  const journal = String(db.pragma('journal_mode', { simple: true }))
  return journal === 'wal' ? [] : [`journal_mode is ${journal}, not wal`]
}
