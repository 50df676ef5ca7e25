/**
 * Restores a backup as the queue of a folder, and salvages a queue into a new folder. Both need a queue without a daemon.
 */
import { accessSync, chownSync, constants, existsSync, mkdirSync, rmdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { errorCode } from '../../../system/caught-error.ts'
import { DiskFull, isDiskFull, NoSuchQueue, QueueFolderUnusable, QueueInUse, SchemaChanged } from '../../errors.ts'
import { isOwned, takeOwnership } from '../../folder/owner-lock.ts'
import { createPrivate } from '../../../system/files/private-file.ts'
import { StoreFailed } from '../../queue-store.ts'
import { removeDatabase, sync } from './database-files.ts'
import { queueFile } from '../../folder/queue-folder.ts'
import { renew } from './generation.ts'
import { assertKnown } from './migrations.ts'
import { schemaDifferences } from './schema-differences.ts'
import { repairQueue } from './repair.ts'
import type { Repair } from '../../repair-report.ts'
import { replaceDatabase } from './replacement.ts'
import { salvage } from './salvage.ts'
import type { SalvageReport } from '../../repair-report.ts'
import { damagesOf } from './full-check.ts'

export { signOfDamage } from './repair.ts'

/** Number of pages per step of a copy: all of them. A copy in several steps would start again at each write of the owner. */
const ALL_PAGES = 0x7fffffff

/** Gives later events other ids: events of the copy and of the original have the same numbers. */
const RENEW_EVENT_EPOCH = `update meta set value = abs(random() % 2176782336) where name = 'event_epoch'`

/**
 * Copies a database to a file that only its owner may read. The copy has a new generation, and its events have other ids. A copy
 * without `wal` can be read where nothing can be written, as on a disk for backups. Returns the size of the copy in bytes.
 */
export async function copyDatabase(db: Database.Database, path: string, journal: 'wal' | 'delete'): Promise<number> {
  createPrivate(path)
  const { totalPages } = await db.backup(path, { progress: () => ALL_PAGES })
  const copy = new Database(path)
  try {
    renew(copy)
    copy.exec(RENEW_EVENT_EPOCH)
    // Ends the write-ahead log, so that the copy is one file.
    copy.pragma('journal_mode = delete')
    if (journal === 'wal') copy.pragma('journal_mode = wal')
    return totalPages * Number(copy.pragma('page_size', { simple: true }))
  } finally {
    copy.close()
  }
}

/**
 * Puts a backup in the place of the queue. Rejects with QueueInUse while a daemon runs, with QueueFolderUnusable when the file is not
 * a sound queue, with SchemaChanged when another program changed its schema, with DiskFull or StoreFailed when the copy cannot be
 * written, with QueueTooNew when a newer deferd wrote it, and with QueueIncompatible when an unreleased one did. Returns the name of the
 * former database, null when there was none.
 */
export async function restoreQueue(directory: string, file: string): Promise<string | null> {
  const backup = openBackup(file)
  try {
    return await replaceBy(backup, directory)
  } finally {
    backup.close()
  }
}

async function replaceBy(backup: Database.Database, directory: string): Promise<string | null> {
  const ownership = takeOwnership(directory)
  const path = queueFile(directory)
  const partial = `${path}.restored`
  try {
    removeDatabase(partial)
    await copyDatabase(backup, partial, 'wal')
    giveTo(directory, [partial, join(directory, 'lock.db')])
    sync(partial)
    return replaceDatabase(path, partial, 'replaced')
  } catch (error) {
    if (!(error instanceof Error) || errorCode(error) === '') throw error
    if (isDiskFull(error)) throw new DiskFull(directory, error, 'restore')
    throw new StoreFailed(`cannot restore the queue in ${directory}: ${error.message}; check its disk, then restore again`, {
      cause: error,
    })
  } finally {
    removeDatabase(partial)
    ownership.release()
  }
}

function openBackup(file: string): Database.Database {
  const unusable = (detail: string, cause?: unknown): QueueFolderUnusable =>
    new QueueFolderUnusable(`cannot restore ${file}: ${detail}; nothing was changed`, cause === undefined ? {} : { cause })
  let db: Database.Database | undefined
  try {
    accessSync(file, constants.R_OK)
    if (!statSync(file).isFile()) throw unusable('it is not a file')
    db = new Database(file, { readonly: true, fileMustExist: true })
    const version = assertKnown(db, file)
    if (version === 0) throw unusable('it is empty')
    const differences = schemaDifferences(db, version)
    if (differences !== null) throw new SchemaChanged(file, differences, 'backup')
    const [damage] = damagesOf(db)
    if (damage !== undefined) throw unusable(`it is damaged (${damage}); deferd salvage recovers what is readable`)
    return db
  } catch (error) {
    db?.close()
    if (error instanceof Error && 'exitCode' in error) throw error
    throw unusable(error instanceof Error ? error.message : String(error), error)
  }
}

/** Gives files to the owner of the folder, when root restores the queue of another user. */
function giveTo(directory: string, files: readonly string[]): void {
  const { uid, gid } = statSync(directory)
  if (process.getuid?.() === 0) for (const file of files) chownSync(file, uid, gid)
}

/**
 * Writes the readable mail of a queue into the new folder `to`. `from` is a queue folder or a database file. Throws NoSuchQueue,
 * QueueInUse while a daemon runs, QueueFolderUnusable when nothing is readable, and the system error when `to` exists.
 */
export function salvageQueue(from: string, to: string): SalvageReport {
  const path = existsSync(from) && statSync(from).isDirectory() ? queueFile(from) : from
  if (!existsSync(path)) throw new NoSuchQueue(from)
  if (isOwned(dirname(path))) throw new QueueInUse(dirname(path), undefined, undefined)
  mkdirSync(to, { mode: 0o700 })
  let report: SalvageReport
  try {
    report = salvage(path, queueFile(to))
  } catch (error) {
    rmdirSync(to)
    throw error
  }
  for (const folder of [to, dirname(to)]) sync(folder)
  return report
}

/**
 * Rebuilds a queue in which the full check finds damage, or whose schema was changed; returns null when it finds neither. Throws NoSuchQueue, or QueueInUse
 * while a daemon runs.
 */
export function repairDamage(directory: string): Repair | null {
  if (!existsSync(queueFile(directory))) throw new NoSuchQueue(directory)
  const ownership = takeOwnership(directory)
  try {
    const damage = firstDamage(queueFile(directory))
    return damage === undefined ? null : repairQueue(directory, damage)
  } finally {
    ownership.release()
  }
}

function firstDamage(path: string): string | undefined {
  let db: Database.Database | undefined
  try {
    db = new Database(path, { readonly: true })
    const version = assertKnown(db, path)
    return (version === 0 ? null : schemaDifferences(db, version)) ?? damagesOf(db)[0]
  } catch (error) {
    if (error instanceof Database.SqliteError) return error.message
    throw error
  } finally {
    db?.close()
  }
}
