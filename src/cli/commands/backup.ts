/** `deferd backup` copies one consistent state of the queue to a file, also while the daemon runs; `deferd restore` puts it back. */
import { lstat, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Command } from 'commander'
import { errorMessage } from '../../system/caught-error.ts'
import { DAY, type Duration, type WallTime, type MachineClock } from '../../system/clock.ts'
import type { Random } from '../../system/random.ts'
import { isDamage, isDiskFull } from '../../store/errors.ts'
import { QUEUE_FILES } from '../../store/queue-folder.ts'
import type { ReadOnlyStore } from '../../store/sqlite/open-store.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { assertInFolder } from '../queue-client/queue-access.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { byteSize, maskControls } from '../../presentation/text.ts'

async function synced(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** A running backup writes to its partial file all the time, so that a killed one has left a file of this age. */
const ABANDONED_AGE: Duration = DAY

interface Source {
  readonly directory: string
  readonly clock: MachineClock
  readonly random: Random
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

/**
 * Creates the file that becomes the backup when it is complete. A backup contains mail, so only its owner may read it. Its name is random:
 * two backups may run at once, and a link cannot be put in its place. Throws CommandError (73).
 */
async function createPartial(file: string, { directory, clock, random }: Source): Promise<string> {
  const partial = `${file}.partial-${random.stream('backup')().toString(36).slice(2, 10)}`
  try {
    const problem = await nameProblem(file, directory)
    if (problem !== null) throw new Error(problem)
    await removeLeft(file, clock.now() - ABANDONED_AGE)
    await (await open(partial, 'wx', 0o600)).close()
    return partial
  } catch (cause) {
    const why = `cannot create the backup ${file}: ${errorMessage(cause)}; name a file in a folder that you can write`
    throw new CommandError(EX.cannotCreate, why, { cause })
  }
}

/** Writes the backup. Resolves with its size in bytes. Throws CommandError (73, 74), and the error of SQLite for a damaged queue. */
async function copied(queue: ReadOnlyStore, file: string, source: Source): Promise<number> {
  const partial = await createPartial(file, source)
  try {
    const size = await queue.copyTo(partial)
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
    throw new CommandError(EX.ioError, `cannot write the backup ${file}: ${errorMessage(cause)}; ${remedy}`, { cause })
  }
}

async function backup(shell: Shell, file: string, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  assertInFolder(config, 'back it up with pg_dump, or with the base backups of the server')
  const { openStoreReadOnly } = await import('../../store/sqlite/open-store.ts')
  const queue = openStoreReadOnly(config.queue_directory)
  try {
    const size = await copied(queue, file, { directory: config.queue_directory, clock: shell.clock, random: shell.random })
    await shell.stdout.write(`${byteSize(size)} copied to ${maskControls(file)}\n`)
  } finally {
    await queue.close()
  }
}

export function addBackup(program: Command, shell: Shell): void {
  subcommand(program, 'backup <file>', 'copy the queue to a file, with or without a running daemon')
    .addHelpText(
      'after',
      `
An older backup of this name is replaced when the new one is complete. deferd restore FILE puts the backup in the place of the queue.

Exit codes: 0 copied; 69 no queue; 73 the file cannot be created; 74 it cannot be written, for example on a full disk; 78 the queue
cannot be read.

Example:
  deferd backup /var/backups/deferd.db`,
    )
    .action((file: string, _options: unknown, command: Command) => backup(shell, file, command))
}

export function addRestore(program: Command, shell: Shell): void {
  subcommand(program, 'restore <file>', 'replace the queue by a backup (queue restore brings back deleted mail)')
    .addHelpText(
      'after',
      `
The backup is checked first. The former queue is kept beside the new one as queue.db.replaced. Mail that was delivered since
the backup is sent again; mail that was accepted since is in queue.db.replaced only.

Exit codes: 0 restored; 74 the disk failed; 75 a daemon or a command uses the queue, or the disk is full; 78 the file is no sound
queue of this version, or another program has changed its tables, indexes, views or triggers; or the queue folder cannot be used.

Example:
  deferd restore /var/backups/deferd.db`,
    )
    .action(async (file: string, _options: unknown, command: Command) => {
      const { config } = await configOf(shell, command)
      assertInFolder(config, 'restore a dump of pg_dump with psql or pg_restore, while no node runs')
      const { restoreQueue } = await import('../../store/sqlite/file/restore.ts')
      const kept = await restoreQueue(config.queue_directory, file)
      const former = kept === null ? '' : `; the former queue is kept as ${kept}`
      await shell.stdout.write(`${maskControls(`${file} restored to ${config.queue_directory}${former}`)}\n`)
    })
}
