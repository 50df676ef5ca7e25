/**
 * Opens the queue as its owner: the database, the core over it, and the recovery after the previous owner.
 */
import type { LeaseTerms } from '../../../mail/message.ts'
import { onDisk } from '../../folder/disk-failure.ts'
import { SyncedLog, syncFailed } from '../durability/synced-log.ts'
import { FileGuard } from '../file/file-guard.ts'
import type { Call, Outcome } from '../../methods.ts'
import { StoreFailed } from '../../queue-store.ts'
import { Batches } from './batches.ts'
import { logFrames } from '../file/checkpoints.ts'
import { leaveSyncs, openForWriting, openingsOf, openInMemory, type Database } from '../file/database.ts'
import { queueFile } from '../../folder/queue-folder.ts'
import { assertNotEmptied, assertOwnLog } from '../file/generation.ts'
import { isDamage } from '../../errors.ts'
import { readEnds, repairQueue, signOfDamage } from '../file/repair.ts'
import type { Repair } from '../../repair-report.ts'
import { recover, type RecoveryReport } from './recovery.ts'
import { stopwatch } from '../../../system/system-clock.ts'
import { BallastFile, noReserve } from '../../folder/reserve.ts'
import { Room } from '../file/room.ts'
import { createStoreCore, type StoreCore } from './store-core.ts'

export interface OpenedCore {
  readonly db: Database
  readonly core: StoreCore
  readonly batches: Batches
  /** The log, which the caller syncs after each batch; null for a queue in memory. */
  readonly log: SyncedLog | null
  readonly terms: LeaseTerms
  readonly recovery: RecoveryReport
}

interface CoreOptions {
  /**
   * True in the thread of a daemon: calls fail after a file of the queue was removed or replaced (FileGuard), and slow checkpoints wait by the time of
   * the process (CheckpointPace), which worlds do not have.
   */
  readonly inThread: boolean
  /** Lease terms before a repair in operation, which continue to apply; absent at the first opening by this process. */
  readonly terms?: LeaseTerms
}

/**
 * Opens the queue, in memory when `directory` is null. A damaged queue is rebuilt from its readable pages; QueueFolderUnusable is
 * thrown when that fails. Throws QueueEmptied, and the errors of openForWriting.
 */
export function openCore(directory: string | null, options: CoreOptions): OpenedCore {
  return directory === null ? openOver(openInMemory(), null, options, null) : onDisk(directory, () => openFolder(directory, options))
}

function openFolder(directory: string, options: CoreOptions): OpenedCore {
  const created = assertNotEmptied(queueFile(directory))
  const sign = signOfDamage(directory)
  const repair = sign === null ? null : repaired(directory, sign)
  try {
    const opened = openFile(directory, options, repair)
    return { ...opened, recovery: { ...opened.recovery, created } }
  } catch (error) {
    if (repair !== null || !isDamage(error)) throw error
    return openFile(directory, options, repaired(directory, error instanceof Error ? error.message : String(error)))
  }
}

/** Repairs a queue. Throws ForeignLog, or QueueFolderUnusable when the file has no readable page of a queue. */
function repaired(directory: string, why: string): Repair {
  assertOwnLog(queueFile(directory))
  return repairQueue(directory, why)
}

function openFile(directory: string, options: CoreOptions, repair: Repair | null): OpenedCore {
  const db = openForWriting(directory)
  try {
    readEnds(db)
    return openOver(db, directory, options, repair)
  } catch (error) {
    db.close()
    throw error
  }
}

function openOver(db: Database, directory: string | null, options: CoreOptions, repair: Repair | null): OpenedCore {
  // A queue has one owner at a time, so leases do not expire: they end when another process opens the queue.
  const terms = options.terms ?? { owner: openingsOf(db), until: Infinity }
  const reserve = directory === null ? noReserve : new BallastFile(directory)
  const room = new Room(db, reserve)
  const core = createStoreCore(db, terms, () => room.forMail())
  const recovery = { ...(options.terms === undefined ? recover(db, core) : NOTHING_RECOVERED), repair, created: false }
  reserve.restore()
  const log = directory === null ? null : logOf(db, directory)
  const daemon =
    directory === null || !options.inThread
      ? {}
      : { files: new FileGuard([queueFile(directory), `${queueFile(directory)}-wal`]), now: stopwatch }
  const batches = new Batches(db, core, room, daemon)
  return { db, core, batches, log, terms, recovery }
}

/** Greatest number of syncs at once. They need threads of libuv, of which half stay free for others. */
export const SYNCS = Math.max(1, Math.min(8, Math.floor(Number(process.env['UV_THREADPOOL_SIZE'] ?? 4) / 2) || 1))

/** The log of a queue that is open. From here on, commits are not synced by SQLite. */
function logOf(db: Database, directory: string): SyncedLog {
  leaveSyncs(db)
  return new SyncedLog(queueFile(directory), { most: SYNCS, frames: logFrames(db) })
}

const NOTHING_RECOVERED: Omit<RecoveryReport, 'repair' | 'created'> = { quarantined: [], swept: 0 }

/**
 * Runs calls. When SQLite finds the file damaged, the queue is rebuilt from its readable pages, the calls that failed for this
 * reason are repeated, and the reopened queue is returned. Throws StoreFailed at a second damage in one process, because the disk
 * is failing.
 */
export function runRepairing(
  directory: string,
  opened: OpenedCore,
  calls: readonly Call[],
): { readonly opened: OpenedCore; readonly outcomes: Outcome[] } {
  const outcomes = opened.batches.run(calls)
  const failed = calls.filter((_, n) => isDamaged(outcomes[n]))
  const [first] = outcomes.filter(isDamaged)
  if (first === undefined || first.ok) return { opened, outcomes }
  if (opened.recovery.repair !== null)
    throw new StoreFailed(`the queue file was damaged again after its repair: ${first.error.message}; check the disk`)
  syncLog(opened)
  opened.log?.close()
  opened.db.close()
  // The other connections of this process read the old file until they notice the new one; nothing writes the old one any more.
  const repair = repairQueue(directory, first.error.message)
  const reopened = openFile(directory, { inThread: true, terms: opened.terms }, repair)
  const repeated = reopened.batches.run(failed)
  return { opened: reopened, outcomes: outcomes.map((outcome) => (isDamaged(outcome) ? (repeated.shift() ?? outcome) : outcome)) }
}

/** Runs calls and syncs the log, so that each successful call is durable: written and durable are the same. */
export function runSynced(opened: Pick<OpenedCore, 'log' | 'batches'>, calls: readonly Call[]): Outcome[] {
  const outcomes = opened.batches.run(calls)
  if (!opened.batches.takeChanged()) return outcomes
  try {
    syncLog(opened)
    return outcomes
  } catch (error) {
    return outcomes.map((outcome) => (outcome.ok ? { ok: false, error: error as Error } : outcome))
  }
}

/** Syncs the log of a queue. Throws StoreFailed, after which each call of the queue fails. */
function syncLog({ log, batches }: Pick<OpenedCore, 'log' | 'batches'>): void {
  try {
    log?.sync()
  } catch (cause) {
    const failure = syncFailed(cause)
    batches.fail(failure)
    throw failure
  }
}

const isDamaged = (outcome: Outcome | undefined): boolean => outcome !== undefined && !outcome.ok && isDamage(outcome.error)
