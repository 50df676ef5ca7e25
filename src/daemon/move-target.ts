/** Opens the queue to which another one moves. Its mover owns it until the move ends, so no daemon may run with it. */
import { resolve } from 'node:path'
import { MoveRefused, type MovableQueue } from '../queue/queue-mover.ts'
import { QueueInUse } from '../store/errors.ts'
import { folderProblem } from '../store/queue-folder.ts'
import { openStore } from '../store/sqlite/open-store.ts'
import type { Duration, MachineClock } from '../system/clock.ts'
import { QueueClock } from '../system/queue-clock.ts'

export interface OpenedTarget extends MovableQueue {
  /** The queue, as operators name it. */
  readonly name: string
  readonly close: () => Promise<void>
}

export interface TargetDeps {
  readonly machine: MachineClock
  /** Clock of the source, which a new queue continues. */
  readonly clock: QueueClock
  /** `maximal_backoff_time`, see QueueClock.resume. */
  readonly unknown: Duration
  /** True to write in a worker thread, for a process that must not block. */
  readonly threads: boolean
}

/** Opens or creates the queue. Rejects with MoveRefused, or as openStore does. */
export async function openMoveTarget(to: string, deps: TargetDeps): Promise<OpenedTarget> {
  if (/^\w+:\/\//.test(to))
    throw new MoveRefused(64, `cannot move to ${to.replace(/\/\/.*@/, '//')}: this version moves mail between queue directories only`)
  const name = resolve(to)
  const problem = folderProblem(name, process.geteuid?.() ?? 0)
  if (problem !== null) throw new MoveRefused(78, `cannot use ${name} as the queue folder: ${problem}`)
  const { store, reader, close } = await opened(name, deps)
  const clock = new QueueClock(deps.machine)
  let record = await reader.clockRecord()
  if (record === null) await store.saveClock((record = deps.clock.record()))
  clock.resume(record, deps.unknown)
  return { name, store, moves: store, clock, close }
}

async function opened(name: string, { threads }: TargetDeps) {
  try {
    return await openStore(name, { threads, create: true })
  } catch (error) {
    if (!(error instanceof QueueInUse)) throw error
    throw new MoveRefused(75, `${error.message}: stop it, then repeat the command; it can be started again when the move has ended`)
  }
}
