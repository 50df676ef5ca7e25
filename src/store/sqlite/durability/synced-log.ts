/**
 * The write-ahead log of an open queue, opened again for its syncs. Only this file is opened again: closing any descriptor of a file ends the
 * locks of the process on it, and SQLite locks the database and the shared memory.
 */
import { closeSync, fdatasync, fdatasyncSync, openSync, readSync } from 'node:fs'
import { errorMessage } from '../../../system/caught-error.ts'
import { StoreFailed } from '../../queue-store.ts'
import { SyncedMark } from './synced-mark.ts'

/** Offset of the salts in the header of the log, and their bytes. */
const SALTS_AT = 16
const SALTS = 8

/** The failure of the store after that of a sync. */
export const syncFailed = (cause: unknown): StoreFailed =>
  new StoreFailed(`I/O error in the queue file: the write-ahead log cannot be synced: ${errorMessage(cause)}`, { cause })

/** The end of the log when a sync begins. */
interface Position {
  readonly salts: Uint8Array
  readonly frames: number
}

export class SyncedLog {
  readonly #frames: () => number
  readonly #mark: SyncedMark
  /**
   * Descriptors that no sync uses. Each sync that runs has one of its own: the system reports an error of a page once to each descriptor, so
   * that of two syncs over one descriptor, one could succeed although its pages were lost.
   */
  readonly #idle: number[]
  #running = 0
  #isClosed = false

  /**
   * Opens the log of `database`, which SQLite has open, for `most` syncs at once and one in the thread of the caller. `frames` returns the
   * number of frames in the log.
   */
  constructor(database: string, { most, frames }: { readonly most: number; readonly frames: () => number }) {
    this.#frames = frames
    this.#mark = new SyncedMark(database)
    this.#idle = Array.from({ length: most + 1 }, () => openSync(`${database}-wal`, 'r'))
  }

  /** Syncs the log in this thread. Throws the error of the system. */
  sync(): void {
    const fd = this.#take()
    try {
      const position = this.#position(fd)
      fdatasyncSync(fd)
      this.#mark.write(position.salts, position.frames)
    } finally {
      this.#give(fd)
    }
  }

  /** Begins a sync of what is written now, and calls `ended` when it has ended, with its error or null. */
  begin(ended: (error: Error | null) => void): void {
    const fd = this.#take()
    const position = this.#position(fd)
    fdatasync(fd, (error) => {
      const failure = error ?? this.#marked(position)
      this.#give(fd)
      ended(failure)
    })
  }

  /** Closes the file when no sync runs any more. Has no effect a second time: the numbers of closed descriptors may be those of other files. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const fd of this.#idle.splice(0)) closeSync(fd)
    if (this.#running === 0) this.#mark.close()
  }

  #take(): number {
    const fd = this.#idle.pop()
    if (fd === undefined) throw new Error('more syncs at once than descriptors')
    this.#running++
    return fd
  }

  #give(fd: number): void {
    this.#running--
    if (!this.#isClosed) return void this.#idle.push(fd)
    closeSync(fd)
    if (this.#running === 0) this.#mark.close()
  }

  #position(fd: number): Position {
    const salts = new Uint8Array(SALTS)
    readSync(fd, salts, 0, SALTS, SALTS_AT)
    return { salts, frames: this.#frames() }
  }

  #marked({ salts, frames }: Position): Error | null {
    try {
      this.#mark.write(salts, frames)
      return null
    } catch (error) {
      return error as Error
    }
  }
}
