/** Files of a database as a whole: their removal and their sync. */
import { closeSync, fsyncSync, openSync, rmSync } from 'node:fs'

/** Removes a database and the files that SQLite keeps beside it. */
export function removeDatabase(path: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${path}${suffix}`, { force: true })
}

/** Syncs a file or a folder. */
export function sync(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
