/**
 * Verifies the indexes of the queue, at the start and once a day. Mail missing from an index would wait until a restart or for ever. The
 * store finds such mail slice by slice, and repairs the queue.
 */
import type { RecipientId } from '../../mail/message.ts'
import { DAY, sleep, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import { rethrowUnlessUnavailable } from '../../store/queue-store.ts'
import type { StoreUpkeep } from '../../store/store-upkeep.ts'

/** A million recipients take 20 minutes, and half a hundredth of a processor. */
const BETWEEN_SLICES: Duration = 250

/** A failed check runs again after a day. StoreHealth reports the store that caused the failure. */
export function checkIndexes(clock: Clock, store: Pick<StoreUpkeep, 'verify'>): PeriodicTask {
  const verifyAll = async (stopping: AbortSignal): Promise<void> => {
    for (let after: RecipientId | null = 0; after !== null && !stopping.aborted;) {
      after = await store.verify(after)
      await sleep(clock, BETWEEN_SLICES, stopping)
    }
  }
  return every(clock, DAY, verifyAll, { immediate: true, failed: rethrowUnlessUnavailable })
}
