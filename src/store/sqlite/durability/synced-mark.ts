/**
 * The mark: how far the write-ahead log was synced, in a file beside it. After a loss of power, commits that were not synced may be incomplete
 * before others that are whole, and a commit that was synced is damaged only by the disk: the mark tells one from the other. It is written
 * after a sync and not synced itself, so that the disk may have an older one, or none that can be read, and never one that is too new.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import { errorCode } from '../../../system/caught-error.ts'
import { crc32 } from '../../../system/crc32.ts'
import { createPrivate } from '../../../system/files/private-file.ts'

const markFile = (database: string): string => `${database}-synced`

/** Bytes of the salts, which are new whenever the log begins anew, of the number of frames, and of a checksum over both. */
const SALTS = 8
const SIZE = SALTS + 4 + 4

/** Creates the file. A log beside which it is missing was written by a version that syncs each commit before the next one. */
export const createMark = (database: string): void => createPrivate(markFile(database))

export class SyncedMark {
  readonly #fd: number
  readonly #bytes = Buffer.alloc(SIZE)

  constructor(database: string) {
    this.#fd = openSync(markFile(database), 'r+')
  }

  write(salts: Uint8Array, frames: number): void {
    this.#bytes.set(salts)
    this.#bytes.writeUInt32BE(frames, SALTS)
    this.#bytes.writeUInt32BE(crc32(this.#bytes.subarray(0, SALTS + 4)), SALTS + 4)
    try {
      writeSync(this.#fd, this.#bytes, 0, SIZE, 0)
    } catch (error) {
      // On a full disk, an older mark stays.
      if (!isFull(errorCode(error))) throw error
    }
  }

  close(): void {
    closeSync(this.#fd)
  }
}

/**
 * Number of frames of a log with these salts that are known to be synced; 0 when the mark is of another log or cannot be read, null without
 * a mark.
 */
export function syncedFrames(database: string, salts: Uint8Array): number | null {
  const mark = markOf(database)
  if (mark === null) return null
  if (mark.length !== SIZE || mark.readUInt32BE(SALTS + 4) !== crc32(mark.subarray(0, SALTS + 4))) return 0
  return mark.subarray(0, SALTS).equals(salts) ? mark.readUInt32BE(SALTS) : 0
}

const isFull = (code: string): boolean => code === 'ENOSPC' || code === 'EDQUOT'

function markOf(database: string): Buffer | null {
  try {
    return readFileSync(markFile(database))
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}
