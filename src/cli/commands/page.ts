/**
 * `deferd page`: prints a link that logs in to the page once. While admin_listen is off, opens a port on 127.0.0.1 for the page and
 * forwards it to the daemon's socket, until it is interrupted.
 */
import { InvalidArgumentError, Option, type Command } from 'commander'
import { hostname } from 'node:os'
import { adminSocketPath } from '../../daemon/admin/socket-path.ts'
import type { LoginCode } from '../../daemon/local-routes.ts'
import type { ClientRole } from '../../http/requests/requester.ts'
import { SocketForwarder } from '../../http/socket-forwarder.ts'
import { errorCode } from '../../system/caught-error.ts'
import { shellWord } from '../../system/shell-word.ts'
import { configOf, subcommand } from '../shell/config-options.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'

/** Roles that have screens. */
const ROLES = ['viewer', 'operator', 'admin'] as const satisfies readonly ClientRole[]

interface Options {
  readonly role: (typeof ROLES)[number]
  readonly content?: true
  readonly port?: number
}

function portArgument(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new InvalidArgumentError('Expected a port number.')
  return Number(text)
}

/** Name of the user for the audit log: under sudo, of the user who called it. */
const userOf = ({ env, login }: Shell): string => env['SUDO_USER'] ?? login

/** The command line that forwards the page's port to another machine, with the link and instructions. */
function linkText(
  url: string,
  { code, lifetime }: LoginCode,
  { shell, isLocal }: { readonly shell: Shell; readonly isLocal: boolean },
): string {
  const port = new URL(url).port
  const ssh = `ssh -L ${port}:127.0.0.1:${port} ${shellWord(`${userOf(shell)}@${hostname()}`)}`
  return `${url}login#${code}

The link works once, within ${lifetime / 1000} seconds.
${isLocal ? `From another machine, keep this running there, then open the link: ${ssh}\n` : ''}`
}

async function newCode(
  shell: Shell,
  { role, content }: Options,
  command: Command,
): Promise<{ readonly code: LoginCode; readonly socket: string }> {
  const { config } = await configOf(shell, command)
  const code = await shell.newLoginCode(config, { user: userOf(shell), role, content: content === true || role === 'admin' })
  if (code === null)
    throw new CommandError(
      EX.unavailable,
      `no daemon runs for the queue in ${config.queue_directory}: start it with ${shell.program} start`,
    )
  return { code, socket: adminSocketPath(config.queue_directory) }
}

async function forwardedPort(forwarder: SocketForwarder, port: number): Promise<number> {
  try {
    return await forwarder.listen(port)
  } catch (cause) {
    throw new CommandError(EX.unavailable, `cannot listen on 127.0.0.1:${port} (${errorCode(cause)}): choose another port with --port`, {
      cause,
    })
  }
}

async function page(shell: Shell, options: Options, command: Command): Promise<void> {
  const { code, socket } = await newCode(shell, options, command)
  if (code.url !== null) {
    const isLocal = /^(?:127\.|\[::1\]$)/.test(new URL(code.url).hostname)
    await shell.stdout.write(linkText(code.url, code, { shell, isLocal }))
    return
  }
  const forwarder = new SocketForwarder(socket, shell.clock)
  const port = await forwardedPort(forwarder, options.port ?? 0)
  try {
    await shell.stdout.write(linkText(`http://127.0.0.1:${port}/`, code, { shell, isLocal: true }))
    await shell.stdout.write('The page is open until this command ends (Ctrl-C).\n')
    // A hang-up of the terminal ends the command too, so that no port stays open unseen.
    const hungUp = Promise.withResolvers<void>()
    await Promise.race([shell.untilStopped(hungUp.resolve), hungUp.promise])
  } finally {
    await forwarder.close()
  }
}

export function addPage(program: Command, shell: Shell): void {
  subcommand(program, 'page', 'open the page of the running daemon: print a link that logs in once')
    .addOption(new Option('--role <role>', 'what the page may do').choices(ROLES).default('admin'))
    .option('--content', 'also header and body of messages; the role admin may always read them')
    .option('--port <port>', 'port on 127.0.0.1, while admin_listen is off (default: a free one)', portArgument)
    .addHelpText(
      'after',
      `
While admin_listen is off, the page is at a port on 127.0.0.1 until the command ends; Ctrl-C ends it. With admin_listen, the command
prints the link and ends. Only root and the user who runs the daemon can do this.

Examples:
  deferd page
  deferd page --role viewer`,
    )
    .action((options: Options, command: Command) => page(shell, options, command))
}
