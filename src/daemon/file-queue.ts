/** Opens the queue in a folder for the daemon, and logs what the opening found. */
import { QueueInUse, QueueMoved } from '../store/errors.ts'
import { SOLE_MEMBERSHIP } from '../store/membership/membership.ts'
import { QueueHandover } from '../store/membership/queue-handover.ts'
import type { StoreFailed } from '../store/queue-store.ts'
import { repairLines, type Repair } from '../store/repair-report.ts'
import { openStore, type OwnedStore } from '../store/sqlite/open-store.ts'
import { seconds, sleep, type Clock, type Duration } from '../system/clock.ts'
import type { Events, QueueEvent } from '../telemetry/events.ts'
import type { OpenedQueue } from './node/opened-queue.ts'

/** A start waits this long for a command that owns the queue. */
const LOCK_LIMIT: Duration = seconds(5)
const LOCK_PAUSE: Duration = 100

interface FileQueueDeps {
  readonly directory: string
  readonly clock: Clock
  readonly events: Events
  /** Called when the store has failed permanently. */
  readonly failed: (failure: StoreFailed) => void
}

/** Opens the queue. While a command owns the queue, tries again for LOCK_LIMIT, then rejects with QueueInUse. Rejects with QueueMoved. */
export async function openFileQueue(deps: FileQueueDeps): Promise<OpenedQueue> {
  const opened = await openPatiently(deps)
  try {
    return await examined(opened, deps)
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** Logs what the opening found. Rejects with QueueMoved, or with StoreUnavailable when the queue cannot be read. */
async function examined(
  { store, reader, sides, recovery, started, close }: OwnedStore,
  { directory, events }: FileQueueDeps,
): Promise<OpenedQueue> {
  if (recovery.created) events.emit({ kind: 'note', level: 'info', text: `new queue created in ${directory}` })
  if (recovery.repair !== null) noteRepair(events, recovery.repair)
  for (const message of recovery.quarantined) events.emit(quarantineNote(message))
  const { movedTo, leaving, arriving } = await store.moveState()
  if (movedTo !== null) throw new QueueMoved(directory, movedTo)
  const incomplete = leaving + arriving
  if (incomplete > 0) events.emit({ kind: 'note', level: 'warning', text: `${incomplete} messages ${INCOMPLETE}` })
  const membership = new QueueHandover(SOLE_MEMBERSHIP)
  const movable = { name: directory, moves: store, giveAway: () => membership.giveAway(), takeBack: () => membership.takeBack() }
  return { store, reader, sides, providers: null, membership, node: null, movable, started, close }
}

const INCOMPLETE = 'are between this queue and another one, because deferd queue move was interrupted: repeat that command'

async function openPatiently({ directory, clock, events, failed }: FileQueueDeps): Promise<OwnedStore> {
  const deadline = clock.monotonic() + LOCK_LIMIT
  for (;;) {
    try {
      return await openStore(directory, {
        threads: true,
        create: true,
        isStarting: true,
        onQuarantined: (message) => events.emit(quarantineNote(message)),
        onRepaired: (repair) => noteRepair(events, repair),
        onFailed: failed,
      })
    } catch (error) {
      if (!(error instanceof QueueInUse) || clock.monotonic() >= deadline) throw error
      await sleep(clock, LOCK_PAUSE)
    }
  }
}

function noteRepair(events: Events, repair: Repair): void {
  for (const text of repairLines(repair)) events.emit({ kind: 'note', level: 'error', text })
  for (const message of repair.corrupt) events.emit(quarantineNote(message))
}

const quarantineNote = ({ queueId, why }: { readonly queueId: string; readonly why: string }): QueueEvent => ({
  kind: 'note',
  level: 'error',
  text: `${queueId}: moved to the corrupt queue: ${why}`,
})
