/**
 * `deferd --host URL --token-file FILE COMMAND`: a command for the queue of another machine, through the API of its daemon. A command that
 * needs files or a process of that machine says so.
 */
import type { Command } from 'commander'
import { ApiClient } from '../queue-client/api-client.ts'
import { ApiConnection } from '../queue-client/api-connection.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { REMOTE_CHANGES } from './remote-changes.ts'
import { remoteEndpoint, type RemoteOptions } from './remote-endpoint.ts'
import { REMOTE_READS } from './remote-reads.ts'

const OPERATIONS = ['flush', 'hold', 'release', 'requeue', 'expire', 'delete', 'restore'].map((name) => `queue ${name}`)

/** Commands whose changes go through a QueueClient alone. */
const UNCHANGED: ReadonlySet<string> = new Set([
  ...OPERATIONS,
  'token add',
  'token remove',
  'webhook add',
  'webhook remove',
  'webhook secret',
  'webhook replay',
  'access add',
  'access remove',
  'tls forget',
])

/** Commands that use nothing of a queue. */
const WITHOUT_QUEUE: ReadonlySet<string> = new Set(['help'])

/** The words of a command, such as `queue list`. */
function wordsOf(command: Command): string {
  const words: string[] = []
  for (let level = command; level.parent !== null; level = level.parent) words.unshift(level.name())
  return words.join(' ')
}

/** Commands that have subcommands, and an action of their own. */
const WITH_BOTH: ReadonlySet<string> = new Set(['check', 'sink'])

const actingIn = (command: Command): readonly Command[] => [
  ...(command.commands.length === 0 || WITH_BOTH.has(command.name()) ? [command] : []),
  ...command.commands.flatMap(actingIn),
]

export interface RemoteProgram {
  readonly shell: Shell
  /** Gives the commands of a program their remote actions. */
  readonly adapt: (program: Command) => void
}

/** Throws CommandError (64, 78) for options that cannot be used. */
export function remoteProgram(shell: Shell, options: RemoteOptions): RemoteProgram {
  const api = new ApiConnection(remoteEndpoint(options))
  const here = (): never => {
    throw new CommandError(EX.usage, 'this shows messages of the queue in this machine: with --host, add --json')
  }
  const remote: Shell = {
    ...shell,
    // The configuration of this machine is not that of the daemon.
    env: Object.fromEntries(Object.entries(shell.env).filter(([name]) => !name.startsWith('DEFERD_'))),
    defaultFiles: { folder: '/nonexistent/deferd.toml', system: '/nonexistent/deferd.toml' },
    openQueueClient: () => Promise.resolve(new ApiClient(api)),
    openReader: async () => here(),
    openNodes: async () => null,
    liveDestinations: async () => here(),
    liveStatus: async () => here(),
  }
  return {
    shell: remote,
    adapt: (program) => {
      for (const command of actingIn(program)) {
        const words = wordsOf(command)
        const act = REMOTE_READS[words] ?? REMOTE_CHANGES[words]
        if (act !== undefined) command.action(() => act({ shell: remote, api, words: command.args, options: command.opts() }))
        else if (!UNCHANGED.has(words) && !WITHOUT_QUEUE.has(words)) command.action(() => refuse(words))
      }
    },
  }
}

function refuse(words: string): never {
  throw new CommandError(EX.usage, `deferd ${words} is possible on the machine of the relay only: run it there, without --host`)
}
