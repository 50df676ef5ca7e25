/**
 * Exclusive ownership of a queue. The lock is an SQLite lock on a small database beside the queue. The owner holds the lock until
 * `release` or until its process ends. The kernel releases the lock of a process however it ends, so no stale lock can remain. A
 * plain file beside the lock names the owner, for the error message of a second process.
 */
import { accessSync, constants, existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { errorCode } from '../../system/caught-error.ts'
import { makeFolder } from './folder.ts'
import { createPrivate } from '../../system/files/private-file.ts'
import { releaseToOpen } from './reserve.ts'
import { diskFailure } from './disk-failure.ts'
import { isDiskFull, QueueFolderUnusable, QueueInUse } from '../errors.ts'

export interface Ownership {
  /** Notes that the owner answers commands from now on. */
  started(): void
  /** Releases the lock. Idempotent. */
  release(): void
}

const LOCK = 'begin exclusive'

/** Second line of the owner file of a daemon that does not answer commands yet. */
const STARTING = 'starting\n'

/**
 * Creates the queue folder when it is missing, then locks the queue. `isStarting` is true for a daemon, which answers commands from `started` on.
 * Throws QueueInUse, QueueFolderUnusable, DiskFull or StoreFailed.
 */
export function takeOwnership(directory: string, isStarting = false): Ownership {
  const ownerFile = join(directory, 'owner')
  const owner = `${process.pid}\n`
  const db = usable(directory, () => {
    makeFolder(directory)
    const path = join(directory, 'lock.db')
    createPrivate(path)
    return new Database(path, { timeout: 0 })
  })
  try {
    usable(directory, () => lock(db, directory))
    usable(directory, () => writeFileSync(ownerFile, isStarting ? owner + STARTING : owner, { mode: 0o600 }))
  } catch (error) {
    db.close()
    if (!isBusy(error)) throw error
    throw new QueueInUse(directory, ...holderOf(ownerFile))
  }
  return {
    started() {
      // A shorter file needs no room on a full disk.
      if (db.open && existsSync(ownerFile)) truncateSync(ownerFile, owner.length)
    },
    release() {
      if (!db.open) return
      rmSync(ownerFile, { force: true })
      db.close()
    },
  }
}

/** Takes the lock, and makes room on a full disk for the files of an open queue. */
function lock(db: Database.Database, directory: string): void {
  try {
    db.exec(LOCK)
  } catch (error) {
    // SQLite writes to the file only after it has the lock, so the reserve that is removed here belongs to no other owner.
    if (!isDiskFull(error)) throw error
    releaseToOpen(directory)
    db.exec(LOCK)
  }
  releaseToOpen(directory)
}

/** Reads the owner's process id, its start time and whether it is starting from the owner file. */
function holderOf(ownerFile: string): [pid: number | undefined, since: string | undefined, isStarting: boolean] {
  try {
    const text = readFileSync(ownerFile, 'utf8')
    const pid = Number.parseInt(text, 10)
    return [Number.isNaN(pid) ? undefined : pid, statSync(ownerFile).mtime.toISOString(), text.endsWith(STARTING)]
  } catch (error) {
    if (isErrno(error)) return [undefined, undefined, false]
    throw error
  }
}

/** Whether a process owns the queue now. Reads the lock without a change to the folder. Throws QueueFolderUnusable. */
export function isOwned(directory: string): boolean {
  const path = join(directory, 'lock.db')
  if (!existsSync(path)) return false
  const db = usable(directory, () => new Database(path, { readonly: true, timeout: 0 }))
  try {
    db.prepare('select count(*) from sqlite_schema').get()
    return false
  } catch (error) {
    if (isBusy(error)) return true
    throw error
  } finally {
    db.close()
  }
}

/** Whether this user may not write to the folder or to its lock. A file system that nobody can write has another code. */
function isForbidden(directory: string): boolean {
  try {
    for (const path of [directory, join(directory, 'lock.db')]) if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK)
    return false
  } catch (error) {
    return /^(?:EACCES|EPERM)$/.test(errorCode(error))
  }
}

const isErrno = (error: unknown): error is NodeJS.ErrnoException => error instanceof Error && 'syscall' in error

const isBusy = (error: unknown): boolean => error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')

function usable<T>(directory: string, attempt: () => T): T {
  try {
    return attempt()
  } catch (error) {
    if (!(error instanceof Error) || isBusy(error)) throw error
    const failure = diskFailure(directory, error)
    if (failure !== null) throw failure
    const remedy = isForbidden(directory) ? '; run the command as the owner of the folder' : ''
    throw new QueueFolderUnusable(`cannot use ${directory} as the queue folder: ${error.message}${remedy}`, { cause: error })
  }
}
