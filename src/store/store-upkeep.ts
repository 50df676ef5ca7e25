/** Care of the queue's file or database: its clock, old rows, damage, and room. */
import { nothing, type MethodRows } from './method-traits.ts'
import type { RecipientId } from '../mail/message.ts'
import type { QueueTime } from '../system/clock.ts'
import type { ClockRecord } from '../system/queue-clock.ts'

/** Rows that `prune` deletes. */
export interface PruneLimits {
  readonly historyBefore: QueueTime
  readonly historyCount: number
  readonly trashBefore: QueueTime
  readonly requestsBefore: QueueTime
}

/** Methods of QueueStore for upkeep, its member `upkeep`. */
export interface StoreUpkeep {
  /** Saves the state of the queue's clock, from which the next owner continues (QueueReader.clockRecord). */
  saveClock(record: ClockRecord): Promise<void>
  /**
   * Deletes a slice of the history and of the trash: rows older than a limit, and history rows in excess of `historyCount`. Also forgets
   * which messages operations before `historyBefore` have changed, and requests before `requestsBefore`. `more` is true while work may be
   * left; the caller then calls again.
   */
  prune(limits: PruneLimits): Promise<{ readonly more: boolean }>
  /**
   * Writes the entries by which messages are found (QueueReader.search) for a slice of those that arrived or left the history since.
   * `more` is true while others are left; the caller then calls again.
   */
  indexMail(): Promise<{ readonly more: boolean }>
  /**
   * Compares the recipients after an id with the indexes by which deliveries, expiries and notices find them, a slice at a time, so that
   * mail does not wait. Returns the last id of the slice; null after the last slice. A recipient without its entries is damage: a queue
   * in a file is then repaired, like after any other damage.
   */
  verify(after: RecipientId): Promise<RecipientId | null>
  /** Resolves when the store can commit. Writes and syncs a heartbeat row. */
  ping(): Promise<void>
  /**
   * Bytes that new mail can use: free bytes of the file system and free pages of the queue file. 0 while space is left for
   * outcomes only; Infinity for a queue in memory.
   */
  freeSpace(): Promise<number>
}

export const UPKEEP_METHODS = {
  saveClock: { room: 'neither', sending: 'direct', changes: nothing },
  // The pruning reports each purged message itself (Housekeeping).
  prune: { room: 'reserve', sending: 'alone', changes: nothing },
  indexMail: { room: 'neither', sending: 'alone', changes: nothing },
  verify: { room: 'neither', sending: 'direct', changes: nothing },
  // A successful ping means that deliveries can continue.
  ping: { room: 'lease', sending: 'batched', changes: nothing },
  freeSpace: { room: 'neither', sending: 'direct', changes: nothing, isIndependent: true },
} as const satisfies MethodRows<StoreUpkeep>
