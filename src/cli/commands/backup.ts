/** `deferd backup` copies one consistent state of the queue to a file, also while the daemon runs; `deferd restore` puts it back. */
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { errorMessage } from '../../system/caught-error.ts'
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

async function backup(shell: Shell, file: string, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  assertInFolder(config, 'back it up with pg_dump, or with the base backups of the server')
  const { openStoreReadOnly } = await import('../../store/sqlite/open-store.ts')
  const queue = openStoreReadOnly(config.queue_directory)
  const partial = `${file}.partial`
  try {
    // A backup contains mail, so only its owner may read it.
    await (await open(partial, 'w', 0o600)).close()
    const size = await queue.copyTo(partial)
    await synced(partial)
    await rename(partial, file)
    await synced(dirname(file))
    await shell.stdout.write(`${byteSize(size)} copied to ${maskControls(file)}\n`)
  } catch (cause) {
    await rm(partial, { force: true })
    throw new CommandError(EX.osError, `cannot write the backup: ${errorMessage(cause)}`, { cause })
  } finally {
    await queue.close()
  }
}

export function addBackup(program: Command, shell: Shell): void {
  subcommand(program, 'backup <file>', 'copy the queue to a file, with or without a running daemon')
    .addHelpText(
      'after',
      `
deferd restore FILE puts the backup in the place of the queue.

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

Exit codes: 0 restored; 75 a daemon or a command uses the queue; 78 the file is no sound queue of this version.

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
