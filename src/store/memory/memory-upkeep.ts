/** Care of a queue in memory, which has no file: it keeps the clock, and deletes old rows at once. */
import type { StoreUpkeep } from '../store-upkeep.ts'
import { FORGET_OPERATED, FORGET_REQUESTS } from '../records/operation-round.ts'
import { applyOperation } from './operate.ts'
import { pruneTraffic, type MemoryQueue } from './queue-state.ts'

export const upkeepOf = (queue: MemoryQueue): StoreUpkeep => ({
  saveClock: async (record) => {
    queue.clock = record
  },
  prune: async ({ historyBefore, historyCount, trashBefore, requestsBefore }) => {
    pruneTraffic(queue)
    FORGET_OPERATED.held(queue.records, historyBefore)
    FORGET_REQUESTS.held(queue.records, requestsBefore)
    for (const [key, { admittedAt }] of queue.origins) if ((admittedAt ?? Infinity) < historyBefore) queue.origins.delete(key)
    for (const held of queue.messages.values()) {
      if (held.deletedAt === null || held.deletedAt >= trashBefore) continue
      applyOperation(queue, { message: held.message.id, operation: { kind: 'delete', now: held.deletedAt, purge: true } })
    }
    for (const [id, { details }] of queue.history) {
      if ((details.leftAt ?? 0) >= historyBefore && queue.history.size <= historyCount) break
      queue.history.delete(id)
    }
    return { more: false }
  },
  // A search examines all messages.
  indexMail: async () => ({ more: false }),
  verify: async () => null,
  ping: async () => undefined,
  freeSpace: async () => Infinity,
})
