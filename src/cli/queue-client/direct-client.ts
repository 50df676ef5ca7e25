/**
 * Opens the queue for the duration of a command while no daemon runs. The command holds the daemon's lock and performs the
 * operation itself.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { AccessEntries } from '../../access/access-entries.ts'
import { DestinationPolicies } from '../../config/destination-policies.ts'
import type { Config } from '../../config/options.ts'
import type { MovedQueue, MoveProgress, MoveRequest } from '../../queue/queue-move.ts'
import type { MachineClock } from '../../system/clock.ts'
import { QueueClock } from '../../system/queue-clock.ts'
import { Operations } from '../../queue/operations.ts'
import { storedScheduler } from '../../queue/stored-scheduler.ts'
import { openStore } from '../../store/sqlite/open-store.ts'
import { Events } from '../../telemetry/events.ts'
import { directClient } from './daemon-client.ts'
import { CommandError, EX } from '../shell/exit.ts'
import type { QueueClient } from '../shell/queue-client.ts'

/** Takes ownership of the queue until the client is closed. Does not create a missing queue (NoSuchQueue). */
export async function openDirectClient(config: Config, machine: MachineClock): Promise<QueueClient> {
  const { store, reader, close } = await openStore(config.queue_directory, { threads: false, create: false })
  const clock = new QueueClock(machine)
  clock.resume(await reader.clockRecord(), config.maximal_backoff_time)
  // Events have no listener here, because the command prints its result and the audit log records it.
  const events = new Events(() => clock.now())
  const policies = new DestinationPolicies(config)
  const scheduler = storedScheduler(store, reader)
  const operations = new Operations({ store, reader, events, clock, policies: () => policies, retention: () => config, scheduler })
  const move = async (request: MoveRequest, progress: (soFar: MoveProgress) => void) =>
    moveAlone(config, { store, moves: store, reader, clock }, { request, progress, machine })
  return directClient(operations, { move, close, access: new AccessEntries({ store, reader, clock }), store, clock })
}

interface Alone {
  readonly request: MoveRequest
  readonly progress: (soFar: MoveProgress) => void
  readonly machine: MachineClock
}

/** Moves a queue without a daemon: nothing is in delivery, and messages with notices due move too. */
async function moveAlone(config: Config, source: MovedQueue & { readonly clock: QueueClock }, { request, progress, machine }: Alone) {
  const [{ openMoveTarget }, { moveQueue }] = await Promise.all([
    import('../../daemon/move-target.ts'),
    import('../../queue/queue-move.ts'),
  ])
  if (request.isFinal) await assertMaildropEmpty(config.queue_directory)
  const target = await openMoveTarget(request.to, { machine, clock: source.clock, unknown: config.maximal_backoff_time, threads: false })
  try {
    return await moveQueue(request, {
      source,
      target,
      names: { source: config.queue_directory, target: target.name },
      sendsNotices: false,
      returned: () => undefined,
      pause: async () => undefined,
      progress,
      control: { close: async () => undefined, reopen: async () => undefined },
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
