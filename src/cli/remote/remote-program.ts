/**
 * `deferd --host URL --token-file FILE COMMAND`: a command for the queue of another machine, through the API of its daemon. A command that
 * needs files or a process of that machine says so.
 */
import type { Command } from 'commander'
import { ApiClient } from '../queue-client/api-client.ts'
import { ApiConnection } from '../queue-client/api-connection.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { Shell } from '../shell/shell.ts'
import { actingIn, whyHere, wordsOf } from './command-routes.ts'
import { remoteEndpoint, type RemoteOptions } from './remote-endpoint.ts'

interface RemoteProgram {
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
    liveShares: async () => here(),
    nodeShares: async () => here(),
  }
  return {
    shell: remote,
    adapt: (program) => {
      for (const command of actingIn(program)) {
        const words = wordsOf(command)
        const why = whyHere(words)
        if (why !== null) command.action(() => refuse(words, why))
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
