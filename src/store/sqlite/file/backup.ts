/** Writes a backup: a copy of one consistent state of the queue under its name when it is complete and synced. */
import { lstat, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { isDamage, isDiskFull } from '../../errors.ts'
import { QUEUE_FILES } from '../../folder/queue-folder.ts'
import { errorMessage } from '../../../system/caught-error.ts'
import { DAY, type Duration, type WallTime } from '../../../system/clock.ts'
import type { Random } from '../../../system/random.ts'

/** The backup cannot be created (EX_CANTCREAT) or written (EX_IOERR). Nothing has changed. */
export class BackupFailed extends Error {
  override readonly name = 'BackupFailed'
  readonly exitCode: 73 | 74

  constructor(exitCode: 73 | 74, message: string, cause: unknown) {
    super(message, { cause })
    this.exitCode = exitCode
  }
}

interface BackupOrder {
  readonly file: string
  /** Folder of the queue. */
  readonly directory: string
  readonly now: WallTime
  readonly random: Random
  /** Copies the queue to a path, and resolves with the size in bytes. */
  readonly copyTo: (path: string) => Promise<number>
}

/** Writes the backup. Resolves with its size in bytes. Rejects with BackupFailed, and with the error of SQLite for a damaged queue. */
export async function writeBackup(order: BackupOrder): Promise<number> {
  const { file, copyTo } = order
  const partial = await createPartial(order)
  try {
    const size = await copyTo(partial)
    await synced(partial)
    await rename(partial, file)
    await synced(dirname(file))
    return size
  } catch (cause) {
    await rm(partial, { force: true })
    if (isDamage(cause)) throw cause
    const remedy = isDiskFull(cause)
      ? 'free some space on its disk, or name a file on another one'
      : 'check its disk, and that of the queue'
    throw new BackupFailed(74, `cannot write the backup ${file}: ${errorMessage(cause)}; ${remedy}`, cause)
  }
}

/** A running backup writes to its partial file all the time, so that a killed one has left a file of this age. */
const ABANDONED_AGE: Duration = DAY

/**
 * Creates the file that becomes the backup when it is complete. A backup contains mail, so only its owner may read it. Its name is random:
 * two backups may run at once, and a link cannot be put in its place.
 */
async function createPartial({ file, directory, now, random }: BackupOrder): Promise<string> {
  const partial = `${file}.partial-${random.stream('backup')().toString(36).slice(2, 10)}`
  try {
    const problem = await nameProblem(file, directory)
    if (problem !== null) throw new Error(problem)
    await removeLeft(file, now - ABANDONED_AGE)
    await (await open(partial, 'wx', 0o600)).close()
    return partial
  } catch (cause) {
    const why = `cannot create the backup ${file}: ${errorMessage(cause)}; name a file in a folder that you can write`
    throw new BackupFailed(73, why, cause)
  }
}

/** Reason why a backup cannot have this name; null when it can. A file of the queue would be lost, and so would a device. */
async function nameProblem(file: string, directory: string): Promise<string | null> {
  const folder = await realpath(dirname(file))
  if (QUEUE_FILES.has(basename(file)) && folder === (await realpath(directory))) return 'it is a file of the queue'
  const there = await stat(file).catch(() => null)
  return there === null || there.isFile() ? null : 'it is not a file'
}

/** Removes the partial files that killed backups of this name have left. A file that cannot be removed stays. */
async function removeLeft(file: string, before: WallTime): Promise<void> {
  const folder = dirname(file)
  for (const name of await readdir(folder)) {
    if (!name.startsWith(`${basename(file)}.partial-`)) continue
    const path = join(folder, name)
    const status = await lstat(path).catch(() => null)
    if (status !== null && status.mtimeMs < before) await rm(path, { force: true }).catch(() => undefined)
  }
}

async function synced(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}
