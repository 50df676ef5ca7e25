/**
 * Reserved disk space for outcomes. On a disk with zero free bytes, SQLite can neither insert nor delete nor checkpoint, and a
 * delivery whose outcome is not recorded is repeated. So the store allocates a reserve file beside the queue. The file is removed
 * when an outcome does not fit on the disk, and written again when there is free space.
 */
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { errorCode } from '../../system/caught-error.ts'

export interface Reserve {
  /** Size of the reserve file in bytes. */
  readonly size: number
  /** True while the reserve file is removed. Until the file is restored, no new mail is stored. */
  readonly isReleased: boolean
  release(): void
  /** Writes the reserve file again when there is enough free space. */
  restore(): void
  /** Number of free bytes on the disk. */
  freeBytes(): number
}

const MEGABYTE = 1024 * 1024
/**
 * Maximum size of the reserve in bytes: a write-ahead log at its checkpoint (1,000 pages of 8 kB) and one transaction, because the
 * database file may grow by both.
 */
const AMPLE = 12 * MEGABYTE
/** Minimum size of the reserve in bytes. */
const LEAST = 3 * MEGABYTE

/** Reserve of a queue in memory. */
export const noReserve: Reserve = {
  size: AMPLE,
  isReleased: false,
  release: () => undefined,
  restore: () => undefined,
  freeBytes: () => Infinity,
}

const pathIn = (directory: string): string => join(directory, 'reserve')

/**
 * Removes the reserve file, so that the queue can be opened, when the disk has less free space than half of that file. The caller
 * must own the queue.
 */
export function releaseToOpen(directory: string): void {
  const path = pathIn(directory)
  if (freeBytes(directory) < sizeOf(path) / 2) rmSync(path, { force: true })
}

export class BallastFile implements Reserve {
  readonly size: number
  readonly #path: string
  readonly #directory: string
  #isReleased: boolean

  /** Writes no file: the caller restores the reserve once the queue is open. */
  constructor(directory: string) {
    this.#directory = directory
    this.#path = pathIn(directory)
    const { blocks, bsize } = statfsSync(directory)
    this.size = Math.max(LEAST, Math.min(AMPLE, Math.floor((blocks * bsize) / 32)))
    this.#isReleased = sizeOf(this.#path) < this.size
  }

  get isReleased(): boolean {
    return this.#isReleased
  }

  release(): void {
    rmSync(this.#path, { force: true })
    this.#isReleased = true
  }

  /** Requires twice the size of the file to be free, so that the reserve does not alternate between released and restored. */
  restore(): void {
    if (!this.#isReleased || this.freeBytes() < 2 * this.size) return
    try {
      write(this.#path, this.size)
      this.#isReleased = false
    } catch (error) {
      rmSync(this.#path, { force: true })
      if (errorCode(error) !== 'ENOSPC') throw error
    }
  }

  freeBytes(): number {
    return freeBytes(this.#directory)
  }
}

/** Number of bytes that unprivileged users may still write to the folder's file system. */
function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Writes incompressible bytes, because a file system may allocate no blocks for holes or zeros. */
function write(path: string, size: number): void {
  const block = new Uint32Array(MEGABYTE / 4)
  for (let i = 0, state = 1; i < block.length; i++) block[i] = state = Math.imul(state, 1_664_525) + 1_013_904_223
  const file = openSync(path, 'w', 0o600)
  try {
    for (let written = 0; written < size; written += block.byteLength) writeSync(file, block, 0, Math.min(block.byteLength, size - written))
  } finally {
    closeSync(file)
  }
}
