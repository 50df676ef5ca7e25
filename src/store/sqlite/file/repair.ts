/**
 * Repairs a damaged queue: salvages its mail into a new database, which replaces the damaged one. The damaged files are kept.
 */
import Database from 'better-sqlite3'
import { existsSync } from 'node:fs'
import { QueueFolderUnusable } from '../../errors.ts'
import { queueFile } from '../../folder/queue-folder.ts'
import { PageFile } from './page-file.ts'
import { replaceDatabase } from './replacement.ts'
import { removeDatabase } from './database-files.ts'
import { tables } from './salvage-queries.ts'
import { salvage } from './salvage.ts'
import type { Repair } from '../../repair-report.ts'

/**
 * Sign of damage that SQLite does not report, because SQLite takes a damaged write-ahead log for a shorter one; null without such a
 * sign.
 */
export function signOfDamage(directory: string): string | null {
  const path = queueFile(directory)
  if (!existsSync(path)) return null
  const file = new PageFile(path)
  try {
    // SQLite itself reports a file that is not a queue.
    if (!file.isQueue) return null
    if (file.log.state === 'damaged') return 'commits in the write-ahead log follow a damaged frame'
    return file.missing > 0 && file.count > 0 ? `the file ends ${file.missing} pages too early` : null
  } finally {
    file.close()
  }
}

/** Reads the first and the last row of each table. Throws SQLite's error when a page on the way to them is damaged. */
export function readEnds(db: Database.Database): void {
  for (const name of db.prepare<[], string>(tables).pluck().all())
    for (const order of ['asc', 'desc']) db.prepare(`select * from ${name} order by 1 ${order} limit 1`).get()
}

/**
 * Rebuilds the queue from its readable pages. No process may have the queue open. Throws QueueFolderUnusable when the queue cannot
 * be rebuilt.
 */
export function repairQueue(directory: string, why: string): Repair {
  const path = queueFile(directory)
  const rebuilt = `${path}.rebuilt`
  removeDatabase(rebuilt)
  try {
    const report = salvage(path, rebuilt)
    return { ...report, why, kept: replaceDatabase(path, rebuilt, 'damaged') }
  } catch (cause) {
    removeDatabase(rebuilt)
    const detail = cause instanceof Error ? cause.message : String(cause)
    throw new QueueFolderUnusable(
      `the queue ${path} is damaged (${why}) and cannot be rebuilt: ${detail}; run deferd salvage to recover its mail into another folder, or restore the queue from a backup`,
      { cause },
    )
  }
}
