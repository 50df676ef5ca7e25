/** `deferd backup` copies one consistent state of the queue to a file, also while the daemon runs; `deferd restore` puts it back. */
import type { Command } from 'commander'
import { byteSize, maskControls } from '../../presentation/text.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { assertInFolder } from '../queue-client/queue-access.ts'
import type { Shell } from '../shell/shell.ts'

async function backup(shell: Shell, file: string, command: Command): Promise<void> {
  const { config } = await configOf(shell, command)
  assertInFolder(config, ({ copiedBy }) => `back it up with ${copiedBy}`)
  const { openStoreReadOnly } = await import('../../store/sqlite/open-store.ts')
  const { writeBackup } = await import('../../store/sqlite/file/backup.ts')
  const { queue_directory: directory } = config
  const queue = openStoreReadOnly(directory)
  try {
    const { clock, random } = shell
    const size = await writeBackup({ file, directory, now: clock.now(), random, copyTo: (path) => queue.copyTo(path) })
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
      assertInFolder(config, ({ restoring }) => restoring)
      const { restoreQueue } = await import('../../store/sqlite/file/restore.ts')
      const kept = await restoreQueue(config.queue_directory, file)
      const former = kept === null ? '' : `; the former queue is kept as ${kept}`
      await shell.stdout.write(`${maskControls(`${file} restored to ${config.queue_directory}${former}`)}\n`)
    })
}
