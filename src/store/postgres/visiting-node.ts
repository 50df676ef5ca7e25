/**
 * A queue in PostgreSQL opened for one task, such as a command, an import or a move: as a node that takes no shards, and leaves
 * when the task has ended.
 */
import type { OwnerId } from '../../mail/message.ts'
import { Member } from '../membership/member.ts'
import type { Membership } from '../membership/membership.ts'
import type { NodesView } from '../membership/node-table.ts'
import type { MovableStore } from '../move-store.ts'
import type { QueueDatabase } from '../membership/queue-database.ts'
import type { QueueReader } from '../queue-reader.ts'
import { StoreUnavailable } from '../queue-store.ts'
import { seconds, withTimeout, type Duration, type QueueTime, type MachineClock } from '../../system/clock.ts'
import { QueueClock } from '../../system/queue-clock.ts'
import { VERSION } from '../../system/version.ts'
import { openPostgresStore } from './open-store.ts'

/** Time limit for leaving the queue. Without an answer of the database, the node is taken over later. */
const LEAVE_LIMIT: Duration = seconds(5)

export interface VisitingNode {
  readonly id: OwnerId
  readonly store: MovableStore
  readonly reader: QueueReader
  readonly clock: QueueClock
  /** Time of the database. */
  readonly time: () => Promise<QueueTime>
  /** The nodes at the last beat; null before the first. */
  readonly view: () => NodesView | null
  readonly recall: Membership['recall']
  readonly close: () => Promise<void>
}

interface VisitDeps {
  readonly database: QueueDatabase
  /** Parameter `node_name`. */
  readonly name: string
  /** Parameter `node_lease`. */
  readonly lease: Duration
  readonly machine: MachineClock
  /** False for a task that queues no new mail. */
  readonly queuesMail?: boolean | undefined
}

/** Rejects as openPostgresStore does. */
export async function visitQueue({ database, name, lease, machine, queuesMail }: VisitDeps): Promise<VisitingNode> {
  const clock = new QueueClock(machine)
  const labels = { name, program: VERSION, settings: '', hostname: '', draining: true }
  const { store, reader, keys, node, nodes, time, close } = await openPostgresStore({ ...database, labels, clock, queuesMail })
  const member = new Member({ nodes, clock, keys, lease, onEvent: () => undefined })
  void member.start()
  return {
    id: node,
    store,
    reader,
    clock,
    time,
    view: () => member.view,
    recall: (recall) => member.recall(recall),
    close: async () => {
      await withTimeout(leave(member), clock, LEAVE_LIMIT)
      await close()
    },
  }
}

/** Leaves the queue. Without the database, other nodes take this one over. */
async function leave(member: Member): Promise<void> {
  try {
    await member.leave()
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
  }
}
