/** Counts the live mail of each share of a queue in memory. Each call counts the whole queue, because such queues are small. */
import { countsAs, NO_SHARE, type ShareCount } from '../share-counts.ts'
import type { MemoryQueue } from './queue-state.ts'

export function shareCountsOf(queue: MemoryQueue): readonly ShareCount[] {
  const live = [...queue.messages.values()].filter(({ placement }) => countsAs(placement)).map(({ message }) => message)
  return Array.from(
    Map.groupBy(live, ({ share = NO_SHARE }) => share),
    ([share, those]) => ({ share, messages: those.length, bytes: those.reduce((sum, { size }) => sum + size, 0) }),
  )
}
