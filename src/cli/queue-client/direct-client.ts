/**
 * Opens the queue for the duration of a command while no daemon runs. The command holds the daemon's lock and performs the
 * operation itself.
 */
import type { Config } from '../../config/options.ts'
import type { MoveProgress, MoveRequest } from '../../queue/queue-move.ts'
import type { MachineClock } from '../../system/clock.ts'
import { QueueClock } from '../../system/queue-clock.ts'
import { NOTHING_TAKEN } from '../../store/membership/taken-back.ts'
import { openStore } from '../../store/sqlite/open-store.ts'
import { clientOfQueue } from './opened-queue-client.ts'
import type { QueueClient } from '../shell/queue-client.ts'

/** Takes ownership of the queue until the client is closed. Does not create a missing queue (NoSuchQueue). */
export async function openDirectClient(config: Config, machine: MachineClock): Promise<QueueClient> {
  const { store, reader, close } = await openStore(config.queue_directory, { threads: false, create: false })
  const clock = new QueueClock(machine)
  clock.resume(await reader.clockRecord(), config.maximal_backoff_time)
  const move = async (request: MoveRequest, progress: (soFar: MoveProgress) => void) => {
    const { moveAlone } = await import('./move-alone.ts')
    // Nothing is claimed.
    const source = {
      store,
      moves: store,
      reader,
      clock,
      name: config.queue_directory,
      isDelivered: () => false,
      takeBack: async () => NOTHING_TAKEN,
      close: async () => undefined,
    }
    return moveAlone(config, source, { request, progress, machine })
  }
  return clientOfQueue({ config, store, reader, clock, move, close })
}
