/**
 * `deferd --host URL --token-file FILE COMMAND`: a command for the queue of another machine, through the API of its daemon. A command that
 * needs files or a process of that machine says so.
 */
import type { Command } from 'commander'
import { ApiClient } from '../queue-client/api-client.ts'
import { ApiConnection } from '../queue-client/api-connection.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { remoteEndpoint, type RemoteOptions } from './remote-endpoint.ts'

const FILES = 'it uses the configuration and the files of that machine'
const QUEUE = 'it uses the files or the database of the queue'
const NOTHING = 'it asks no relay'

/** Commands that the API cannot serve, by their first words, with the reason. */
const HERE_ONLY: Readonly<Record<string, string>> = {
  'queue move': QUEUE,
  'queue upgrade': QUEUE,
  import: QUEUE,
  backup: QUEUE,
  restore: QUEUE,
  salvage: QUEUE,
  start: 'it is the daemon',
  reload: FILES,
  config: FILES,
  check: FILES,
  map: FILES,
  user: FILES,
  dkim: FILES,
  bounce: FILES,
  'oauth show': FILES,
  'oauth test': 'it logs in with the secrets, and from the network, of that machine',
  'oauth login': 'it writes the refresh token to a file of that machine',
  page: 'its login needs no token, because only users of that machine can ask for it; with one, open the URL in a browser',
  demo: NOTHING,
  lab: NOTHING,
  retry: NOTHING,
  simulate: NOTHING,
  sink: NOTHING,
  record: NOTHING,
}

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
    throw new CommandError(EX.software, 'the command opens a queue of this machine')
  }
  const remote: Shell = {
    ...shell,
    // The configuration of this machine is not that of the daemon.
    env: Object.fromEntries(Object.entries(shell.env).filter(([name]) => !name.startsWith('DEFERD_'))),
    defaultFiles: { folder: '/nonexistent/deferd.toml', system: '/nonexistent/deferd.toml' },
    api,
    openQueueClient: () => Promise.resolve(new ApiClient(api)),
    openReader: async () => here(),
    openNodes: async () => here(),
    liveDestinations: async () => here(),
    liveStatus: async () => here(),
  }
  return {
    shell: remote,
    adapt: (program) => {
      for (const command of actingIn(program)) {
        const words = wordsOf(command)
        const why = HERE_ONLY[words] ?? HERE_ONLY[words.split(' ', 1)[0] ?? '']
        if (why !== undefined) command.action(() => refuse(words, why))
      }
    },
  }
}

function refuse(words: string, why: string): never {
  throw new CommandError(
    EX.usage,
    `deferd ${words} is possible on the machine of the relay only, because ${why}: run it there, without --host`,
  )
}
