/**
 * Detects that the queue's files were removed or replaced while the process has them open. Commits would still succeed, but they
 * would write to files that no other process can open.
 */
import { statSync } from 'node:fs'
import { errorCode } from '../../../system/caught-error.ts'
import { StoreUnavailable } from '../../queue-store.ts'

export class FileGuard {
  /** Paths with the device and inode they had when the queue was opened. */
  readonly #files: readonly (readonly [path: string, identity: string])[]

  constructor(paths: readonly string[]) {
    this.#files = paths.map((path) => [path, identityOf(path) ?? 'missing'])
  }

  /** Throws StoreUnavailable unless every path refers to the file that was opened. Costs one stat(2) per file. */
  assertInPlace(): void {
    for (const [path, identity] of this.#files) {
      const found = identityOf(path)
      if (found === identity) continue
      const what = found === null ? 'was removed' : found.startsWith('E') ? `cannot be reached (${found})` : 'was replaced'
      throw new StoreUnavailable(`${path} ${what} while deferd runs: put the file back, or stop deferd, restore the queue and start again`)
    }
  }
}

/** Device and inode of a file. Null when the file does not exist; the errno code when stat(2) fails for another reason. */
function identityOf(path: string): string | null {
  try {
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? null : `${stat.dev}:${stat.ino}`
  } catch (error) {
    return errorCode(error)
  }
}
