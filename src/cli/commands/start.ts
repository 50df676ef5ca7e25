/**
 * `deferd start`: runs the relay in the foreground and prints the listening addresses and, for a new queue on a terminal, the
 * commands for a first mail. SIGTERM and SIGINT stop the relay after running deliveries; SIGHUP reloads the configuration.
 */
import type { Command } from 'commander'
import { listenText, placeText } from '../shell/addresses.ts'
import { configFlags, configToPrepare, subcommand } from '../shell/config-options.ts'
import { BrokenPipe, CommandError, EX, OutputFailed } from '../shell/exit.ts'
import type { Config } from '../../config/options.ts'
import type { RunningDaemon, Shell } from '../shell/shell.ts'

/**
 * An address literal at which no host answers, so that mail to it stays deferred: 192.0.2.0/24 is reserved for documentation (RFC
 * 5737).
 */
const FIRST_RECIPIENT = 'you@[192.0.2.1]'

/** Commands for a first mail. `deferd` is the command that runs this program, `flags` its configuration. */
const firstMailLines = (deferd: string, flags: string): string =>
  `
Send a first mail from another terminal. It stays deferred, because no host answers at 192.0.2.1:
  printf 'Subject: hello\\n\\nIt works.\\n' | ${deferd} sendmail -v${flags} -f me@example.com '${FIRST_RECIPIENT}'

`

/** Commands suggested once the first message is queued. */
const nextLines = (queueId: string, deferd: string, flags: string): string =>
  `
The mail ${queueId} is queued. List the queue, see why the mail waits, and try it again:
  ${deferd} queue list${flags}
  ${deferd} queue show ${queueId}${flags}
  ${deferd} queue flush ${queueId}${flags}

`

/** True when mail for an address literal is sent to that address; false when the configuration may send it elsewhere. */
const sendsToLiterals = (config: Config): boolean =>
  config.relayhost.length === 0 &&
  config.transport_maps.size === 0 &&
  config.transport_tables.length === 0 &&
  config.sender_dependent_relayhost_maps.length === 0 &&
  config.sender_dependent_default_transport_maps.length === 0

/** Windows syncs no folders, so that a new file of the queue could be absent after a loss of power. */
const ON_WINDOWS =
  'the relay does not run on Windows, where a folder cannot be synced to the disk: start it in WSL 2 or a container; deferd lab and the test kit run here'

/** Suggests a first mail, and the next commands when it is queued. Only on a terminal, and only for a new queue. */
async function guide(shell: Shell, daemon: RunningDaemon, config: Config, flags: string): Promise<void> {
  if (shell.stdout.columns === null || !daemon.described().isNewQueue || !sendsToLiterals(config)) return
  await shell.stdout.write(firstMailLines(shell.program, flags))
  daemon.firstAccepted.then((queueId) => shell.stdout.write(nextLines(queueId, shell.program, flags))).catch(() => undefined)
}

/** Prints the addresses and the guide. The relay runs on when the reader of its output has closed the pipe, and when the output cannot be written. */
async function describe(shell: Shell, daemon: RunningDaemon, config: Config, flags: string): Promise<void> {
  // A container has one stream for standard output and the log, whose readers expect JSON: the log has the addresses.
  if (config.log_format === 'json') return
  try {
    const described = daemon.described()
    await shell.stdout.write(`${listenText(described)}\n${placeText(described)}\n`)
    await guide(shell, daemon, config, flags)
  } catch (error) {
    if (error instanceof OutputFailed) await shell.stderr.write(`deferd: warning: ${error.message}\n`)
    else if (!(error instanceof BrokenPipe)) throw error
  }
}

export function addStart(program: Command, shell: Shell): void {
  subcommand(program, 'start', 'run the relay in the foreground')
    .option('--user <name>', 'user to run as after the ports are open; only root can name one')
    .addHelpText(
      'after',
      `
SIGTERM and SIGINT stop the relay in order. SIGHUP reloads the configuration, with listeners, certificates, http_listen and
admin_listen, and opens log_file again; a change of queue_directory needs a restart. While a command owns the queue, the
start waits up to 5 seconds for it, then ends with 75.

With --user, root reads the configuration and opens the ports. The user owns the queue and its folder, and reads keys, tables and other
files, as at each reload, which reads the configuration as the user too.

Examples:
  deferd start
  deferd start --config /etc/deferd/deferd.toml
  deferd start --user deferd
  deferd start -o relayhost=[smtp.example.com]:587 -o log_format=json`,
    )
    .action(async ({ user }: { readonly user?: string }, command: Command) => {
      if (shell.platform === 'win32') throw new CommandError(EX.unavailable, ON_WINDOWS)
      // A signal before the ports are open takes effect when they are.
      let wanted = false
      let reload = (): void => void (wanted = true)
      const stopped = shell.untilStopped(() => reload())
      const loaded = configToPrepare(shell, command)
      const daemon = await shell.startDaemon(loaded, () => Promise.resolve(configToPrepare(shell, command)), user)
      reload = () => daemon.reload()
      if (wanted) reload()
      try {
        await describe(shell, daemon, loaded.config, configFlags(command))
        await stopped
      } finally {
        await daemon.stop()
      }
    })
}
