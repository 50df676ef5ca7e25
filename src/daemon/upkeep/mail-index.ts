/** Keeps the index by which messages are found up to date. Mail of the last seconds is found without it. */
import { SECOND, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import { rethrowUnlessUnavailable } from '../../store/queue-store.ts'
import type { StoreUpkeep } from '../../store/store-upkeep.ts'

const INTERVAL: Duration = 5 * SECOND

/** A failed run is repeated after the interval. StoreHealth waits for the store that caused the failure. */
export function indexMail(clock: Clock, store: Pick<StoreUpkeep, 'indexMail'>): PeriodicTask {
  const run = async (stopping: AbortSignal): Promise<void> => {
    for (let { more } = await store.indexMail(); more && !stopping.aborted;) ({ more } = await store.indexMail())
  }
  return every(clock, INTERVAL, run, { failed: rethrowUnlessUnavailable })
}
