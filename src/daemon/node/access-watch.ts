/** Reads the access entries at intervals, because commands at other nodes change them. */
import { errorMessage } from '../../system/caught-error.ts'
import { SECOND, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'

/** Access entries of other nodes have their effect within this time. */
const INTERVAL: Duration = 5 * SECOND

/** `failed` gets the reason why the entries could not be read; the next interval tries again. A stop does not wait for a running read. */
export function watchAccess(clock: Clock, load: () => Promise<void>, failed: (why: string) => void): PeriodicTask {
  const look = (stopping: AbortSignal): Promise<void> =>
    load().catch((error: unknown) => {
      if (!stopping.aborted) failed(errorMessage(error))
    })
  return every(clock, INTERVAL, look, { stopLimit: 0 })
}
