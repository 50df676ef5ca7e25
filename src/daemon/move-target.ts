/**
 * Opens the queue to which another queue moves. The mover owns a target in a directory until the move ends, so no daemon may use that
 * directory. Nodes may use a target in PostgreSQL; the mover is then a node without shards.
 */
import { resolve } from 'node:path'
import type { Config } from '../config/options.ts'
import { databaseName, parseDatabaseUrl } from '../config/values/database-url.ts'
import { placeNamed } from '../config/values/queue-place.ts'
import { MoveRefused, type MovableQueue } from '../queue/queue-mover.ts'
import type { MoveRequest } from '../queue/queue-move.ts'
import { QueueInUse } from '../store/errors.ts'
import { folderProblem } from '../store/folder/queue-folder.ts'
import { DatabaseAway, DatabaseUnusable } from '../store/membership/database-errors.ts'
import { openStore } from '../store/sqlite/open-store.ts'
import type { MachineClock } from '../system/clock.ts'
import { readRecord } from './node/database-clock.ts'
import { QueueClock } from '../system/queue-clock.ts'

export interface OpenedTarget extends MovableQueue {
  /** The queue, as operators name it. */
  readonly name: string
  readonly close: () => Promise<void>
}

export interface TargetDeps {
  readonly machine: MachineClock
  /** Clock of the source, which a new queue in a directory continues. */
  readonly clock: QueueClock
  readonly config: Pick<Config, 'maximal_backoff_time' | 'node_name' | 'node_lease'>
  /** True to write in a worker thread, for a process that must not block. */
  readonly threads: boolean
  /** Folder that this process has locked although its queue is elsewhere; null for none. */
  readonly ownFolder: string | null
}

/** Opens or creates the queue. Rejects with MoveRefused, or as openStore does. */
export const openMoveTarget = (request: TargetRequest, deps: TargetDeps): Promise<OpenedTarget> =>
  ({ folder: openDirectory, database: openDatabase })[placeNamed(request.to)](request, deps)

type TargetRequest = Pick<MoveRequest, 'to' | 'durability'>

async function openDatabase({ to, durability }: TargetRequest, deps: TargetDeps): Promise<OpenedTarget> {
  const { machine, config } = deps
  const [url, name] = [parseDatabaseUrl(to), databaseName(to)]
  if (url === null) throw new MoveRefused(64, `cannot move to ${name}: it has not the form postgresql://USER@HOST/DATABASE`)
  const { visitQueue } = await import('../store/postgres/visiting-node.ts')
  try {
    const database = { url, durability }
    const labels = { name: config.node_name, lease: config.node_lease }
    const { store, clock, time, close } = await visitQueue({ ...labels, database, machine, queuesMail: false })
    const record = await readRecord(clock, time).catch(async (error: unknown) => {
      await close()
      throw error
    })
    clock.resume(record, config.maximal_backoff_time)
    return { name, store, moves: store, clock, close }
  } catch (error) {
    if (!(error instanceof DatabaseAway || error instanceof DatabaseUnusable)) throw error
    throw new MoveRefused(error.exitCode, `cannot move to ${name}: ${error.message.replaceAll(/\bqueue_database: /g, '')}`)
  }
}

async function openDirectory({ to }: TargetRequest, deps: TargetDeps): Promise<OpenedTarget> {
  const name = resolve(to)
  const problem = folderProblem(name, process.geteuid?.() ?? 0)
  if (problem !== null) throw new MoveRefused(78, `cannot use ${name} as the queue folder: ${problem}`)
  const { store, reader, close } = await opened(name, deps)
  const clock = new QueueClock(deps.machine)
  let record = await reader.clockRecord()
  if (record === null) await store.upkeep.saveClock((record = deps.clock.record()))
  clock.resume(record, deps.config.maximal_backoff_time)
  return { name, store, moves: store, clock, close }
}

async function opened(name: string, { threads, ownFolder }: TargetDeps) {
  try {
    return await openStore(name, { threads, create: true, isOwned: ownFolder !== null && resolve(ownFolder) === name })
  } catch (error) {
    if (!(error instanceof QueueInUse)) throw error
    throw new MoveRefused(75, `${error.message}: stop it, then repeat the command; it can be started again when the move has ended`)
  }
}
