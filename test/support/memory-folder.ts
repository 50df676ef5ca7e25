/**
 * Directs the temporary files of the tests to a file system in memory, unless TMPDIR is set. They open and close hundreds of queues and
 * databases: on a disk, the syncs take a third of the time of `npm test`. No test depends on what a sync does to a disk; those of lost
 * power record the writes instead. The suites of test/long, which measure and fill queues, use the disk.
 */
import { accessSync, constants, statfsSync } from 'node:fs'

const FOLDER = '/dev/shm'

/** Free bytes that the tests need. They use less than 2 GB at a time. */
const NEEDED = 4_000_000_000

export default function setup(): void {
  if (process.env['TMPDIR'] === undefined && isUsable()) process.env['TMPDIR'] = FOLDER
}

function isUsable(): boolean {
  try {
    accessSync(FOLDER, constants.W_OK)
    const { bavail, bsize } = statfsSync(FOLDER)
    return bavail * bsize >= NEEDED
  } catch {
    return false
  }
}
