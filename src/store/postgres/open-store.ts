/**
 * Opens a queue in PostgreSQL as a new node: creates or migrates its tables, joins, and opens the store and the reader. The node owns no
 * shard yet.
 */
import type { OwnerId } from '../../mail/message.ts'
import { seconds, withTimeout, type Clock, type Duration, type QueueTime } from '../../system/clock.ts'
import type { PeriodicTask } from '../../system/periodic-task.ts'
import { ProviderDirectory } from '../../config/provider-directory.ts'
import { ShardKeys } from '../membership/shard-keys.ts'
import { ProviderMail } from './provider-mail.ts'
import { ShareCounter } from './share-counter.ts'
import { ProviderMembers } from './provider-members.ts'
import { LastingSession } from './session/lasting-session.ts'
import { refreshKeys } from './session/key-changes.ts'
import type { Shard } from '../membership/shards.ts'
import type { QueueDatabase } from '../membership/queue-database.ts'
import type { NodeDirectory } from '../membership/node-directory.ts'
import type { NodeTable } from '../membership/node-table.ts'
import type { QuestionTable } from '../membership/questions.ts'
import { PostgresNodeDirectory } from './node-directory.ts'
import type { QueueReader } from '../queue-reader.ts'
import type { MovableStore } from '../move-store.ts'
import type { StoreSides } from '../store-health.ts'
import { openSession } from './session/client.ts'
import { CommandConnection, Connection } from './session/database-connection.ts'
import { assertUnchanged, migrate, MIGRATIONS, newestIn, type SqlFiles } from './migrations.ts'
import { joinNode, type NodeLabels } from './node.ts'
import { createPostgresReader } from './postgres-reader.ts'
import { ARRIVALS_CHANNEL, PostgresNodeTable } from './postgres-node-table.ts'
import { createStore } from './postgres-store.ts'
import { statementFailed } from './session/sql-errors.ts'
import { ReadingSession } from './session/reading-session.ts'
import type { DatabaseState } from '../membership/database-state.ts'
import { watchDatabase } from './database-watch.ts'
import { VACUUM_FROM, vacuumTables } from './vacuum.ts'
import { RecentMail } from './committing/recent-mail.ts'
import type { WritingEvent } from '../membership/writing-events.ts'
import { KEPT_FOR } from './writing/tally-query.ts'

export { RecentMail } from './committing/recent-mail.ts'

interface PostgresOptions extends QueueDatabase {
  readonly labels: NodeLabels
  readonly clock: Clock
  /** Called once, when another node has taken this one over. */
  readonly onFenced?: (() => void) | undefined
  /** Receives facts about transactions. */
  readonly onEvent?: ((event: WritingEvent) => void) | undefined
  /** Mail that this process has queued as a node that was taken over. */
  readonly recent?: RecentMail | undefined
  /** False for an owner that queues no new mail: no message ids are reserved for it, which another queue may want to keep. */
  readonly queuesMail?: boolean | undefined
  /** Time for which a tally is used again. */
  readonly tallyKeptFor?: Duration | undefined
  /** Those of this deferd when absent. */
  readonly migrations?: SqlFiles | undefined
  /** Number of dead rows from which a table is vacuumed. */
  readonly vacuumFrom?: number | undefined
}

/** A queue in PostgreSQL, opened by one node. */
export interface PostgresQueue {
  readonly node: OwnerId
  readonly store: MovableStore
  readonly reader: QueueReader
  readonly sides: StoreSides
  /** Aborted when the writing side is abandoned, since the database does not answer. */
  readonly abandoned: AbortSignal
  /** The table of the nodes, in sessions of its own. */
  readonly nodes: NodeTable & QuestionTable
  /** Opens the directory of the nodes in another session. */
  readonly openDirectory: () => Promise<NodeDirectory>
  /** Shards of destinations, as the node knows them. */
  readonly keys: ShardKeys
  /** True when the tables were created by this opening. */
  readonly created: boolean
  /** Reads the state of the database from now on, every 15 s. */
  readonly watch: (seen: (state: DatabaseState) => void) => PeriodicTask
  /** The clock of the database. */
  readonly time: () => Promise<QueueTime>
  /** Closes the reader and the store. The node stays until it leaves or is taken over. */
  readonly close: () => Promise<void>
  /** Closes the sessions at once, like the end of the process. */
  readonly destroy: () => Promise<void>
}

/** Time limit of a change of providers, which waits for the transactions of all nodes. */
const LIMIT: Duration = seconds(5)
/** Time limit of a slice of the mail that follows. */
/** Of a slice that counts the shares of a queue. */
const COUNT_LIMIT: Duration = seconds(600)
const SLICE_LIMIT: Duration = seconds(10)

const databaseTime = 'select (extract(epoch from clock_timestamp()) * 1000)::bigint as now'

/** Maximum time for the end of the sessions of a store that could not be opened. */
const CLOSE_LIMIT: Duration = seconds(1)

/** Time limit of a statement of the reader. */
const READER_SETTINGS = { statement_timeout: '15s' }

type Connect = (application: string, settings?: Readonly<Record<string, string>>) => Promise<Connection>

/** Rejects with DatabaseAway, DatabaseUnusable or QueueTooNew. */
export async function openPostgresStore(options: PostgresOptions): Promise<PostgresQueue> {
  const { url, durability, labels, migrations = MIGRATIONS } = options
  const connect: Connect = async (application, settings = {}) =>
    new Connection(await openSession({ url, durability, application, pipeline: true, settings }))
  const writing = await connect('deferd w')
  try {
    const { created } = await migrate(writing, migrations)
    await assertUnchanged(writing, migrations)
    const node = await joinNode(writing, labels, newestIn(migrations))
    await writing.query(`select set_config('application_name', $1, false)`, [writingSession(node)])
    return { created, ...(await openNode(node, writing, connect, options)) }
  } catch (error) {
    writing.destroy()
    throw statementFailed(error)
  }
}

/** Name of the session of a node that writes. */
const writingSession = (node: OwnerId): string => `deferd ${node} w`

function added<T>(list: T[], one: T): T {
  list.push(one)
  return one
}

async function openNode(
  node: OwnerId,
  writing: Connection,
  connect: Connect,
  options: PostgresOptions,
): Promise<Omit<PostgresQueue, 'created'>> {
  const { url, durability, clock, vacuumFrom = VACUUM_FROM } = options
  const reading = new ReadingSession(() => connect(`deferd ${node} r`, READER_SETTINGS))
  const wake = wakingBy(reading)
  const keys = new ShardKeys(new ProviderDirectory(), -1)
  await refreshKeys(writing, node, keys)
  const lasting = (letter: string, limit: Duration) =>
    new LastingSession({ terms: { url, durability, application: `deferd ${node} ${letter}` }, clock, limit })
  const mail = new ProviderMail({ node, clock, reading, wake, session: lasting('m', SLICE_LIMIT) })
  const members = new ProviderMembers({ node, clock, keys, mail, wake, session: lasting('p', LIMIT) })
  const counter = new ShareCounter({ node, reading, keys, session: lasting('u', LIMIT), snapshot: lasting('s', COUNT_LIMIT) })
  const tasks: PeriodicTask[] = []
  const closeReading = (): Promise<void> => closeParts({ members, counter, mail, tasks, reading })
  const { store, side, destroy } = await createStore(writing, {
    ...storeOptions(options),
    node,
    clock,
    reading,
    wake,
    keys,
    members,
    counter,
    connect: () => connect(writingSession(node)),
  }).catch(async (error: unknown) => {
    await withTimeout(closeReading(), clock, CLOSE_LIMIT)
    throw error
  })
  const reader = createPostgresReader(reading, async () => undefined)
  tasks.push(vacuumTables({ node, clock, reading, connect: () => connect(`deferd ${node} v`), from: vacuumFrom }))
  return {
    node,
    store,
    reader,
    keys,
    sides: { reader: reading, writer: side },
    abandoned: side.abandoned,
    nodes: new PostgresNodeTable({ me: node, terms: { url, durability }, clock, keys }),
    openDirectory: async () =>
      new PostgresNodeDirectory(new CommandConnection(await openSession({ url, durability, application: 'deferd questions' })), clock),
    time: async () => (await reading.query<{ now: QueueTime }>(databaseTime))[0]?.now ?? clock.now(),
    watch: (seen) => added(tasks, watchDatabase(clock, reading, seen)),
    close: async () => {
      await store.close()
      await closeReading()
    },
    destroy: async () => {
      destroy()
      await closeReading()
    },
  }
}

interface SideParts {
  readonly members: ProviderMembers
  readonly counter: ShareCounter
  readonly mail: ProviderMail
  readonly tasks: readonly PeriodicTask[]
  readonly reading: ReadingSession
}

async function closeParts({ members, counter, mail, tasks, reading }: SideParts): Promise<void> {
  await members.close()
  await counter.close()
  await mail.stop()
  await Promise.all(tasks.map((task) => task.stop()))
  await reading.close()
}

function storeOptions({ labels, clock, onFenced, onEvent, recent, queuesMail, tallyKeptFor }: PostgresOptions) {
  return {
    name: labels.name,
    onFenced: onFenced ?? (() => undefined),
    onEvent: onEvent ?? (() => undefined),
    recent: recent ?? new RecentMail(clock),
    queuesMail: queuesMail ?? true,
    tallyKeptFor: tallyKeptFor ?? KEPT_FOR,
  }
}

/** Sends a hint to the owners of shards in a transaction of its own: one with a change would hold a lock of the whole server during its commit. */
const wakingBy =
  (reading: ReadingSession) =>
  (shards: readonly Shard[]): void =>
    void reading.query('select pg_notify($1, $2)', [ARRIVALS_CHANNEL, shards.join()]).catch(() => undefined)
