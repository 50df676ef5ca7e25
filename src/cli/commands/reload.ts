/** `deferd reload`: has the running daemon read its configuration again, and reports a refusal. */
import type { Command } from 'commander'
import { configOf, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'

export function addReload(program: Command, shell: Shell): void {
  subcommand(program, 'reload', 'have the running daemon read its configuration again')
    .addHelpText(
      'after',
      `
The daemon reads its own configuration, as on SIGHUP, with the options of its start; --config and -o of this command name its
queue_directory only. With a problem, the old configuration stays in effect. systemctl reload calls this command.

Exit codes: 0 the new configuration is in effect; 69 no daemon runs; 75 its queue is not open for now; 77 another user runs the
daemon; 78 the configuration has a problem, which is printed.`,
    )
    .action(async (_options: unknown, command: Command) => {
      const { config } = await configOf(shell, command)
      if (await shell.reloadDaemon(config)) return
      const change = 'a change of queue_directory needs a restart'
      throw new CommandError(EX.unavailable, `no daemon runs with queue_directory = ${config.queue_directory}; ${change}`)
    })
}
