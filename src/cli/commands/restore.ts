/** `deferd restore`: puts a backup in the place of the queue. The counterpart of `deferd backup`. */
import type { Command } from 'commander'
import { configOf, subcommand } from '../shell/config-options.ts'
import type { Shell } from '../shell/shell.ts'
import { maskControls } from '../render/text.ts'

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
      const { restoreQueue } = await import('../../store/sqlite/file/restore.ts')
      const kept = await restoreQueue(config.queue_directory, file)
      const former = kept === null ? '' : `; the former queue is kept as ${kept}`
      await shell.stdout.write(`${maskControls(`${file} restored to ${config.queue_directory}${former}`)}\n`)
    })
}
