/** Moves a queue in the process of the command, because no daemon of it runs on this machine. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/options.ts'
import { openMoveTarget } from '../../daemon/move-target.ts'
import { moveQueue, type MoveProgress, type MoveRequest, type MoveSummary, type SourceControl } from '../../queue/queue-move.ts'
import type { SchedulerControl } from '../../queue/operation-rounds.ts'
import type { MovedQueue } from '../../queue/queue-mover.ts'
import type { MachineClock } from '../../system/clock.ts'
import type { QueueClock } from '../../system/queue-clock.ts'
import { CommandError, EX } from '../shell/exit.ts'

/** A queue that a command has opened as the source of a move. */
interface AloneSource extends MovedQueue {
  readonly clock: QueueClock
  /** The queue, as operators name it: its directory, or its URL without the password. */
  readonly name: string
  /** True when nodes deliver the mail of the queue, and send its notices. */
  readonly isDelivered: () => boolean
  readonly takeBack: SchedulerControl['takeBack']
  readonly close: SourceControl['close']
}

interface Alone {
  readonly request: MoveRequest
  readonly progress: (soFar: MoveProgress) => void
  readonly machine: MachineClock
}

export async function moveAlone(config: Config, source: AloneSource, { request, progress, machine }: Alone): Promise<MoveSummary> {
  if (request.isFinal) await assertMaildropEmpty(config.queue_directory)
  const target = await openMoveTarget(request, { machine, clock: source.clock, config, threads: false, ownFolder: null })
  try {
    return await moveQueue(request, {
      source,
      target,
      names: { source: source.name, target: target.name },
      sendsNotices: source.isDelivered,
      takeBack: source.takeBack,
      returned: () => undefined,
      pause: async () => undefined,
      progress,
      control: { close: source.close, reopen: async () => undefined },
    })
  } finally {
    await target.close()
  }
}

/** Throws CommandError while mail of sendmail is not in the queue, because only a daemon takes it in. */
async function assertMaildropEmpty(queueDirectory: string): Promise<void> {
  const files = await readdir(join(queueDirectory, 'maildrop')).catch(() => [])
  if (files.length === 0) return
  const text = `${files.length} files in ${join(queueDirectory, 'maildrop')} are not in the queue yet`
  throw new CommandError(EX.temporary, `${text}: start the daemon, then repeat the command`)
}
