/**
 * Empty files that reserve inodes for a running queue: write-ahead log, shared memory, lock, owner file and sockets. A
 * local user can use up the inodes of the disk, for example through the maildrop. The reserved inodes let the queue be opened
 * even then.
 */
import { closeSync, existsSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Number of spare files. A start creates five files, and recovery creates a few more. */
const COUNT = 8

export class SpareFiles {
  readonly #folder: string

  constructor(queueDirectory: string) {
    this.#folder = join(queueDirectory, 'spare')
  }

  /** Creates the folder `spare` in the queue folder, and the spare files in it, as the user of the process. Ignores errors. */
  prepare(): void {
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    } catch {
      // The queue works without spare files. The next start tries again to create them.
    }
    this.restore()
  }

  /** Removes the spare files. An unusable folder is ignored here, because opening the queue reports it. */
  release(): void {
    if (!existsSync(this.#folder)) return
    for (const path of this.#paths()) rmSync(path, { force: true })
  }

  /** Creates the missing spare files while there are free inodes and the folder exists. */
  restore(): void {
    try {
      for (const path of this.#paths()) closeSync(openSync(path, 'a', 0o600))
    } catch {
      // The queue works without spare files, as in `prepare`.
    }
  }

  #paths(): readonly string[] {
    return Array.from({ length: COUNT }, (_, i) => join(this.#folder, String(i)))
  }
}
