/**
 * Replaces the database of a queue that no process has open, and keeps the old one. A crash in between leaves the old queue, or
 * the new one beside the old write-ahead log, which the generation (generation.ts) detects.
 */
import { existsSync, linkSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { sync } from './database-files.ts'

/**
 * Puts the file `by`, a database without a write-ahead log, in the place of `path`. Returns the path at which the old database is
 * kept; null when there was none.
 */
export function replaceDatabase(path: string, by: string, label: 'damaged' | 'replaced'): string | null {
  const kept = existsSync(path) ? freeName(`${path}.${label}`) : null
  if (kept !== null) {
    linkSync(path, kept)
    if (existsSync(`${path}-wal`)) linkSync(`${path}-wal`, `${kept}-wal`)
    sync(dirname(path))
  }
  renameSync(by, path)
  for (const suffix of ['-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true })
  sync(dirname(path))
  return kept
}

function freeName(path: string): string {
  for (let n = 1; ; n++) {
    const name = n === 1 ? path : `${path}-${n}`
    if (!existsSync(name)) return name
  }
}
