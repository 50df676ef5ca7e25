/** `deferd queue`: everything about the mail in the queue. */
import type { Command } from 'commander'
import type { Shell } from '../shell.ts'
import { addQueueShape } from './qshape.ts'
import { addQueueCat } from './queue-cat.ts'
import { addQueueList } from './queue-list.ts'
import { addQueueOperations } from './queue-operate.ts'
import { addQueueShow } from './queue-show.ts'

export function addQueue(program: Command, shell: Shell): void {
  const queue = program.command('queue').description('look at the mail in the queue, and act on it')
  addQueueList(queue, shell)
  addQueueShow(queue, shell)
  addQueueCat(queue, shell)
  addQueueShape(queue, shell)
  addQueueOperations(queue, shell)
}
