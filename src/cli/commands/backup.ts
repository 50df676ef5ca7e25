/** `deferd backup`: copies one consistent state of the queue to a file, also while the daemon runs. */
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { errorMessage } from '../../system/caught-error.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { byteSize, maskControls } from '../render/text.ts'

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
