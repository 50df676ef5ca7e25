/** Opens a queue in PostgreSQL for the daemon, as one of the nodes that share it. */
import { existsSync } from 'node:fs'
import type { LoadedConfig } from '../config/load.ts'
import { databaseName } from '../config/values/database-url.ts'
import type { OwnerId } from '../mail/message.ts'
import { Member, type MembershipEvent } from '../store/membership/member.ts'
import { QueueMoved } from '../store/errors.ts'
import { QueueHandover } from '../store/membership/queue-handover.ts'
import type { MovableStore } from '../store/move-store.ts'
import { takeOwnership, type Ownership } from '../store/folder/owner-lock.ts'
import { databaseOf } from '../store/membership/queue-database.ts'
import { openPostgresStore, RecentMail, type PostgresQueue } from '../store/postgres/open-store.ts'
import { StoreUnavailable } from '../store/queue-store.ts'
import { queueFile } from '../store/folder/queue-folder.ts'
import { wasMoved } from '../store/sqlite/open-store.ts'
import { seconds, withTimeout, type Clock, type Duration } from '../system/clock.ts'
import type { QueueClock } from '../system/queue-clock.ts'
import { VERSION } from '../system/version.ts'
import type { Events } from '../telemetry/events.ts'
import type { WritingEvent } from '../store/membership/writing-events.ts'
import { readRecord } from './node/database-clock.ts'
import { DatabaseReport } from './node/database-report.ts'
import type { OpenedQueue } from './node/opened-queue.ts'
import { Peers } from './node/peers.ts'
import { ShardReport } from './node/shard-report.ts'
import { nodeParameters } from './node/shared-settings.ts'
import type { NodeParameters } from '../store/membership/node-table.ts'
import { ownsAlone } from './node/sole-node.ts'

/** For leaving the queue. When the database does not answer, other nodes take this node over later. */
const LEAVE_LIMIT: Duration = seconds(2)

interface SharedQueueDeps {
  /** Folder of the sockets, of the maildrop and of the lock of this node. */
  readonly directory: string
  readonly clock: QueueClock
  readonly events: Events
  readonly loaded: LoadedConfig
  /** Called when another node has taken over this node. */
  readonly fenced: () => void
  /** Called with the duration of each transaction. */
  readonly transacted: (took: Duration) => void
}

export type OpenSharedQueue = (deps: SharedQueueDeps) => Promise<OpenedQueue>

/**
 * Returns a function that joins the queue, each time as a new node. It rejects with QueueInUse when another daemon uses the folder, with
 * DatabaseAway, DatabaseUnusable, QueueTooNew or QueueMoved; the queue is then not joined. The openings share the list of
 * the messages that this process has recently queued.
 */
export function sharedQueueOpener(clock: QueueClock): OpenSharedQueue {
  const recent = new RecentMail(clock)
  return async (deps) => {
    const ownership = takeOwnership(deps.directory)
    try {
      warnOfFile(deps.directory, deps.events)
      return await openAsNode(await joinQueue(deps, recent), deps, ownership)
    } catch (error) {
      ownership.release()
      throw error
    }
  }
}

async function joinQueue(deps: SharedQueueDeps, recent: RecentMail): Promise<PostgresQueue> {
  const { clock, events, loaded } = deps
  const labels = { name: loaded.config.node_name, program: VERSION, draining: false, ...nodeParameters(loaded) }
  const onEvent = (event: WritingEvent): void => reportWriting(event, deps)
  const joined = await openPostgresStore({ ...databaseOf(loaded.config), labels, clock, recent, onEvent })
  if (joined.created) events.emit({ kind: 'note', level: 'info', text: 'tables of a new queue were created in PostgreSQL' })
  return joined
}

async function openAsNode(joined: PostgresQueue, deps: SharedQueueDeps, ownership: Ownership): Promise<OpenedQueue> {
  const { clock, events, loaded } = deps
  const { config } = loaded
  const { store, sides, keys, nodes } = joined
  const name = databaseName(config.queue_database)
  const shards = new ShardReport(clock, events)
  const onEvent = (event: MembershipEvent): void => report(event, joined.node, shards, deps)
  const member = new Member({ nodes, clock, keys, lease: config.node_lease, onEvent })
  const reports = (): boolean => member.view?.mine.includes(0) === true
  const database = new DatabaseReport({ events, reports, replicated: config.queue_database_durability === 'replicated' })
  const watch = joined.watch((state) => database.seen(state))
  const peers = new Peers({ clock, open: joined.openDirectory })
  const close = async (): Promise<void> => {
    await withTimeout(peers.close(), clock, LEAVE_LIMIT, joined.abandoned)
    await leave(member, clock, events, joined.abandoned)
    shards.flush()
    await joined.close()
    ownership.release()
  }
  try {
    await examine(store, name, events)
  } catch (error) {
    await close()
    throw error
  }
  events.emit({ kind: 'node-joined', node: joined.node, name: config.node_name })
  const membership = new QueueHandover(member)
  const sole = { me: joined.node, view: () => member.view, clock }
  const giveAway = async (stopping: AbortSignal): Promise<void> => {
    await ownsAlone(sole, stopping)
    await membership.giveAway()
  }
  const node = {
    me: joined.node,
    view: () => member.view,
    silent: () => member.silent,
    isDraining: () => member.isDraining,
    questions: nodes,
    peers,
    start: () => member.start(),
    describe: (parameters: NodeParameters) => member.describe(parameters),
    drain: () => member.drain(),
    database: () => database.state,
    lacksStandby: () => {
      // The state is read every 15 s; a probe that fails by it has it read again.
      if (database.lacksStandby) watch.wake()
      return database.lacksStandby
    },
  }
  const movable = { name, moves: store, giveAway, takeBack: () => membership.takeBack() }
  const reader = { ...joined.reader, clockRecord: () => readRecord(clock, joined.time) }
  return { store, reader, sides, providers: keys.providers, membership, node, movable, started: () => undefined, close }
}

/** Rejects with QueueMoved for a queue that was moved as a whole. Logs that a move was not completed. */
async function examine(store: MovableStore, name: string, events: Events): Promise<void> {
  const { movedTo, leaving, arriving } = await store.moveState()
  if (movedTo !== null) throw new QueueMoved(name, movedTo)
  const incomplete = leaving + arriving
  if (incomplete === 0) return
  const text = 'are between this queue and another one: unless deferd queue move runs now, it was interrupted, and has to be repeated'
  events.emit({ kind: 'note', level: 'warning', text: `${incomplete} messages ${text}` })
}

/** Leaves the queue, so that other nodes need not wait for the end of the lease. */
async function leave(member: Member, clock: Clock, events: Events, signal: AbortSignal): Promise<void> {
  const leaving = member.leave().then(
    () => null,
    (error: unknown) => {
      if (error instanceof StoreUnavailable) return error.message
      throw error
    },
  )
  const failure = await withTimeout(leaving, clock, LEAVE_LIMIT, signal)
  if (failure === null) return
  const why = failure ?? 'the database does not answer'
  const text = `cannot leave the queue, and other nodes take the mail over after node_lease: ${why}`
  events.emit({ kind: 'note', level: 'warning', text })
}

/** Warns of an SQLite queue in the folder: its mail would wait for ever without a sign. */
function warnOfFile(directory: string, events: Events): void {
  const file = queueFile(directory)
  if (!existsSync(file) || wasMoved(directory)) return
  const text = `${file} is not used, since queue_database names the queue: run deferd without queue_database until its mail is delivered`
  events.emit({ kind: 'note', level: 'warning', text })
}

function reportWriting(event: WritingEvent, { events, transacted }: SharedQueueDeps): void {
  switch (event.kind) {
    case 'committed':
      return transacted(event.took)
    case 'in-doubt':
      return events.emit({ kind: 'commit-in-doubt', resolution: event.resolution })
    case 'failover': {
      const { timeline, lost } = event
      if (lost.length > 0) return events.emit({ kind: 'mail-lost', queueIds: lost, timeline })
      const text = `the database is another server after a failover (timeline ${timeline}); it has all mail that this node queued lately`
      return events.emit({ kind: 'note', level: 'info', text })
    }
  }
}

function report(event: MembershipEvent, me: OwnerId, shards: ShardReport, { events, fenced }: SharedQueueDeps): void {
  switch (event.kind) {
    case 'shards-taken':
    case 'shards-released':
      return shards.add(event.kind, event.shards.length)
    case 'node-taken-over': {
      const { node, name, takeover } = event
      return events.emit({
        kind: 'node-taken-over',
        node,
        name,
        shards: takeover.shards,
        leases: takeover.leases,
        corrupt: takeover.corrupt,
      })
    }
    case 'fenced':
      events.emit({ kind: 'fenced', node: me })
      return fenced()
  }
}
