/** `deferd queue`: everything about the mail in the queue. Only what is called is loaded. */
import type { Command } from 'commander'
import { OPERATIONS } from '../../queue/operations.ts'
import type { Shell } from '../shell.ts'

interface Part {
  readonly names: readonly string[]
  readonly load: () => Promise<(parent: Command, shell: Shell) => void>
}

const PARTS: readonly Part[] = [
  { names: ['list'], load: async () => (await import('./queue-list.ts')).addQueueList },
  { names: ['show'], load: async () => (await import('./queue-show.ts')).addQueueShow },
  { names: ['cat'], load: async () => (await import('./queue-cat.ts')).addQueueCat },
  { names: ['shape'], load: async () => (await import('./qshape.ts')).addQueueShape },
  { names: OPERATIONS, load: async () => (await import('./queue-operate.ts')).addQueueOperations },
]

/** `called` is the word after `queue`; all are added when that names none of them. */
export async function addQueue(program: Command, shell: Shell, called: string | undefined): Promise<void> {
  const queue = program.command('queue').description('look at the mail in the queue, and act on it')
  const one = PARTS.find(({ names }) => names.some((name) => name === called))
  for (const { load } of one === undefined ? PARTS : [one]) (await load())(queue, shell)
}
