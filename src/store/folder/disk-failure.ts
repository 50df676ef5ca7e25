/** Errors for the operator when a full or failing disk keeps the queue from being opened. */
import { errorCode } from '../../system/caught-error.ts'
import { DiskFull, isDiskFull } from '../errors.ts'
import { StoreFailed } from '../queue-store.ts'

/** Whether an error of SQLite or of the system is an I/O error, after which the state of the disk is unknown. */
const isIoError = (error: unknown): boolean => /^(?:EIO|SQLITE_IOERR.*)$/.test(errorCode(error))

/** The error for a queue in a folder that could not be opened; null when the disk is not its cause. */
export function diskFailure(directory: string, error: unknown): DiskFull | StoreFailed | null {
  if (!(error instanceof Error) || 'exitCode' in error) return null
  if (isDiskFull(error)) return new DiskFull(directory, error)
  if (!isIoError(error)) return null
  const code = error.message.includes(errorCode(error)) ? '' : ` (${errorCode(error)})`
  return new StoreFailed(`cannot open the queue in ${directory}: ${error.message}${code}; check the disk, then start again`, {
    cause: error,
  })
}

/** Runs `open`. Throws DiskFull or StoreFailed when the disk fails. */
export function onDisk<T>(directory: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    throw diskFailure(directory, error) ?? error
  }
}
