/**
 * Files of the queue hold mail: they are created for their owner only.
 */
import { closeSync, openSync } from 'node:fs'

/**
 * Creates a file for a database with mode 0600, before SQLite would with the mode of the day; its -wal and -shm get
 * the same mode from SQLite. An existing file is not touched: closing a descriptor of a database that this process
 * has open would drop SQLite's locks on it (POSIX locks belong to the process).
 */
export function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
