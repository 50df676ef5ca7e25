/**
 * `deferd start`: the relay in the foreground. Says where it listens and how to try it; SIGTERM and SIGINT end it in
 * order, SIGHUP makes it read its configuration again.
 */
import type { Command } from 'commander'
import { configFlags, configOf, subcommand } from '../command.ts'
import type { Described, Shell } from '../shell.ts'

const at = (address: string, port: number): string => (address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`)

/** What somebody who started it for the first time wants to know; `deferd` stands for how to start this program again. */
export function welcome({ listeners, queueDirectory, http }: Described, deferd: string, flags: string): string {
  return [
    `deferd takes mail on ${listeners.map(({ address, port }) => at(address, port)).join(', ')}`,
    `the queue is in ${queueDirectory}${http === null ? '' : `, metrics are at http://${http}/metrics`}`,
    'send a first mail, then look at it:',
    `  printf 'Subject: hello\\n\\nIt works.\\n' | ${deferd} sendmail${flags} -f me@example.com you@example.com`,
    `  ${deferd} queue list${flags}`,
    `  ${deferd} queue show${flags} ID`,
  ]
    .map((line) => `${line}\n`)
    .join('')
}

export function addStart(program: Command, shell: Shell): void {
  subcommand(program, 'start', 'run the relay in the foreground')
    .addHelpText(
      'after',
      `
SIGTERM or SIGINT ends it in order, SIGHUP makes it read its configuration again.

Examples:
  deferd start
  deferd start --config /etc/deferd/deferd.toml
  deferd start -o relayhost=[smtp.example.com]:587 -o log_format=json`,
    )
    .action(async (_options: unknown, command: Command) => {
      const daemon = await shell.startDaemon(await configOf(shell, command), () => configOf(shell, command))
      const flags = configFlags(command)
      await shell.stdout.write(welcome(daemon.described(), shell.program, flags))
      await shell.untilStopped(() => daemon.reload())
      await daemon.stop()
    })
}
