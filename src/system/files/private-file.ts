/** Creates files of the queue that only their owner can access, because they hold mail. */
import { closeSync, openSync } from 'node:fs'
import { errorCode } from '../caught-error.ts'

/**
 * Creates a database file with mode 0600. SQLite would create the file with a mode that depends on the umask; SQLite's -wal and
 * -shm files copy the mode of the database. An existing file is not opened, because closing it would drop SQLite's locks on it:
 * POSIX locks belong to the process, not to the descriptor.
 */
export function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600))
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  }
}
