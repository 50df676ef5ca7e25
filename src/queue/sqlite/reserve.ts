/**
 * Room for outcomes when the disk is full. At zero free bytes SQLite can neither insert nor delete nor check-point, and
 * a relay that cannot record its deliveries would repeat them. So a file of ballast lies beside the queue: it is given
 * up when an outcome finds no room, and built up again when space has returned.
 */
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'

export interface Reserve {
  /** The ballast is gone: only outcomes are taken until it is back. */
  readonly isReleased: boolean
  release(): void
  /** Builds the ballast up again when there is room for it. */
  restore(): void
}

/** For a queue without a disk. */
export const noReserve: Reserve = { isReleased: false, release: () => undefined, restore: () => undefined }

const MEGABYTE = 1024 * 1024
/** What the write-ahead log grows to before it is used again from its beginning (1,000 pages of 8 kB). */
const AMPLE = 8 * MEGABYTE
const LEAST = 2 * MEGABYTE

export class BallastFile implements Reserve {
  readonly #path: string
  readonly #directory: string
  readonly #size: number
  #isReleased: boolean

  constructor(directory: string) {
    this.#directory = directory
    this.#path = join(directory, 'reserve')
    const { blocks, bsize } = statfsSync(directory)
    this.#size = Math.max(LEAST, Math.min(AMPLE, Math.floor((blocks * bsize) / 32)))
    this.#isReleased = sizeOf(this.#path) < this.#size
    this.restore()
  }

  get isReleased(): boolean {
    return this.#isReleased
  }

  release(): void {
    rmSync(this.#path, { force: true })
    this.#isReleased = true
  }

  /** Twice its size must be free, so that what was given up is not fought over at the brim. */
  restore(): void {
    if (!this.#isReleased || freeBytes(this.#directory) < 2 * this.#size) return
    try {
      write(this.#path, this.#size)
      this.#isReleased = false
    } catch (error) {
      rmSync(this.#path, { force: true })
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
    }
  }
}

/** What unprivileged users may still write on the disk of a folder. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Really written, in bytes that do not compress away: holes and zeros may take no room at all. */
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
