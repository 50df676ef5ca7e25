/**
 * A command as the owner of the queue, for the moment it takes: while no daemon runs, it holds the daemon's lock and
 * does what the daemon would do.
 */
import { existsSync } from 'node:fs'
import type { Config } from '../config/options.ts'
import type { Clock } from '../mail/clock.ts'
import { Operations, sleepingScheduler } from '../queue/operations.ts'
import { takeOwnership } from '../queue/owner-lock.ts'
import { NoSuchQueue } from '../queue/queue-errors.ts'
import { queueFile } from '../queue/sqlite/database.ts'
import { openInlineStore } from '../queue/sqlite/inline-store.ts'
import { Events } from '../telemetry/events.ts'
import { ownDesk, type OperationsDesk } from './operations-desk.ts'

/** Takes the queue until the desk is closed. A queue that is not there is not made. */
export async function openOwnDesk(config: Config, clock: Clock): Promise<OperationsDesk> {
  const directory = config.queue_directory
  if (!existsSync(queueFile(directory))) throw new NoSuchQueue(directory)
  const ownership = takeOwnership(directory)
  try {
    const { store, reader } = await openInlineStore({ directory })
    // Nobody listens: the command itself says what it did, and the audit remembers it.
    const events = new Events(() => clock.now())
    const operations = new Operations({
      store,
      reader,
      events,
      clock,
      config: () => config,
      wakes: sleepingScheduler(store),
    })
    return ownDesk(operations, async () => {
      await store.close()
      ownership.release()
    })
  } catch (error) {
    ownership.release()
    throw error
  }
}
