/**
 * One owner per queue. The lock is SQLite's own on a small database beside the queue, held for the life of the
 * process: the system lets go of it when the process ends, however it ends, so no stale lock needs a hand. A plain
 * file beside it says who the owner is, for the sentence that a second one gets.
 */
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { createPrivate } from './private-file.ts'
import { QueueFolderUnusable, QueueInUse } from './queue-errors.ts'

export interface Ownership {
  /** Lets another process own the queue. May be called twice. */
  release(): void
}

/** Creates the folder when it is missing and takes ownership. Throws QueueInUse or QueueFolderUnusable. */
export function takeOwnership(directory: string): Ownership {
  const ownerFile = join(directory, 'owner')
  const db = usable(directory, () => {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    const path = join(directory, 'lock.db')
    createPrivate(path)
    return new Database(path, { timeout: 0 })
  })
  try {
    usable(directory, () => db.exec('begin exclusive'))
    usable(directory, () => writeFileSync(ownerFile, `${process.pid}\n`, { mode: 0o600 }))
  } catch (error) {
    db.close()
    if (!isBusy(error)) throw error
    throw new QueueInUse(directory, ...holderOf(ownerFile))
  }
  return {
    release() {
      if (!db.open) return
      rmSync(ownerFile, { force: true })
      db.close()
    },
  }
}

/** The process id and the start of ownership, as the owner wrote them. */
function holderOf(ownerFile: string): [pid: number | undefined, since: string | undefined] {
  try {
    const pid = Number.parseInt(readFileSync(ownerFile, 'utf8'), 10)
    return [Number.isNaN(pid) ? undefined : pid, statSync(ownerFile).mtime.toISOString()]
  } catch (error) {
    if (isErrno(error)) return [undefined, undefined]
    throw error
  }
}

const isErrno = (error: unknown): error is NodeJS.ErrnoException => error instanceof Error && 'syscall' in error

const isBusy = (error: unknown): boolean => error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')

function usable<T>(directory: string, attempt: () => T): T {
  try {
    return attempt()
  } catch (error) {
    if (!(error instanceof Error) || isBusy(error)) throw error
    throw new QueueFolderUnusable(`cannot use ${directory} as the queue folder: ${error.message}`, { cause: error })
  }
}
