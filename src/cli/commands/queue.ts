/** `deferd queue`: commands on queued mail. Only the module of the called command is loaded. */
import type { Command } from 'commander'
import { OPERATIONS } from '../../queue/operation-request.ts'
import type { Shell } from '../shell/shell.ts'

interface Part {
  readonly names: readonly string[]
  readonly load: () => Promise<(parent: Command, shell: Shell) => void>
}

const PARTS: readonly Part[] = [
  { names: ['list'], load: async () => (await import('./queue/queue-list.ts')).addQueueList },
  { names: ['show'], load: async () => (await import('./queue/queue-show.ts')).addQueueShow },
  { names: ['cat'], load: async () => (await import('./queue/queue-cat.ts')).addQueueCat },
  { names: ['shape'], load: async () => (await import('./queue/queue-shape.ts')).addQueueShape },
  { names: ['causes'], load: async () => (await import('./queue/queue-causes.ts')).addQueueCauses },
  { names: ['shares'], load: async () => (await import('./queue/queue-shares.ts')).addQueueShares },
  { names: ['upgrade'], load: async () => (await import('./queue/queue-upgrade.ts')).addQueueUpgrade },
  { names: ['move'], load: async () => (await import('./queue/queue-move.ts')).addQueueMove },
  { names: OPERATIONS, load: async () => (await import('./queue/queue-change.ts')).addQueueOperations },
]

/** Adds the subcommand `called`, or all of them when no subcommand has that name. */
export async function addQueue(program: Command, shell: Shell, called: string | undefined): Promise<void> {
  const queue = program.command('queue').description('list, show and change queued mail')
  const one = PARTS.find(({ names }) => names.some((name) => name === called))
  for (const { load } of one === undefined ? PARTS : [one]) (await load())(queue, shell)
}
