/**
 * Creates and migrates the tables of a queue that nodes of two releases may share while it is upgraded. `0002_NAME.sql` only adds: the
 * first new node applies it, and nodes that do not know it go on. `0002_NAME.finish.sql` has the changes with which those nodes would
 * fail, such as the removal of a column; `deferd queue upgrade --finish` applies it when there is no such node any more, and none may
 * join after that.
 */
import type { Finish, OlderNode, Schema } from '../membership/node-directory.ts'
import { VERSION, versionNumber } from '../../system/version.ts'
import { resources } from '../../system/packaged-files.ts'
import { NoSuchQueue, QueueTooNew } from '../errors.ts'
import { SHARDS } from '../membership/shards.ts'
import type { Connection, Statements } from './session/database-connection.ts'
import { DatabaseUnusable } from '../membership/database-errors.ts'

/** SQL files by name, sorted by name. */
export type SqlFiles = ReadonlyMap<string, string>

/** The migrations of this deferd. */
export const MIGRATIONS: SqlFiles = resources('migrations/postgres')

/** Key of the advisory lock: "defd" in ASCII. */
const LOCK = 0x64656664

interface Migration {
  readonly version: number
  /** True for changes that wait for the end of the upgrade. */
  readonly finishes: boolean
  readonly sql: string
}

const migrationsIn = (files: SqlFiles): readonly Migration[] =>
  [...files]
    .map(([file, sql]) => ({ version: Number(file.slice(0, 4)), finishes: file.endsWith('.finish.sql'), sql }))
    .toSorted((one, other) => one.version - other.version || Number(one.finishes) - Number(other.finishes))

/** Number of the last migration. */
export const newestIn = (files: SqlFiles): number => migrationsIn(files).at(-1)?.version ?? 0

/** Runs `work` in a transaction that one process at a time runs, however long the others take. */
async function alone<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  await connection.command('begin')
  try {
    await connection.command('set local lock_timeout = 0')
    await connection.query('select pg_advisory_xact_lock($1)', [LOCK])
    await connection.command('set local lock_timeout to default')
    const result = await work()
    await connection.command('commit')
    return result
  } catch (error) {
    if (!connection.isLost) await connection.command('rollback')
    throw error
  }
}

/** Records the version of this deferd. The row stays unlocked when it has that version already. */
const RECORD_PROGRAM = 'update queue set written_by = $1 where written_by is distinct from $1'

/**
 * Applies the missing migrations and returns whether the queue was created. A new queue needs no upgrade: all its migrations are finished.
 * Throws QueueTooNew for a queue whose upgrade to a newer deferd was finished, and DatabaseUnusable when the number of shards differs.
 */
export const migrate = (connection: Connection, files = MIGRATIONS): Promise<{ readonly created: boolean }> =>
  alone(connection, async () => {
    const { version: from } = await schemaOf(connection, files)
    const created = from === 0
    const missing = migrationsIn(files).filter(({ version, finishes }) => version > from && (created || !finishes))
    for (const { sql } of missing) await connection.command(sql)
    const [newest] = missing.slice(-1)
    if (newest !== undefined) {
      await connection.query('update queue set version = $1, oldest_known = case when $2 then $1 else oldest_known end', [
        newest.version,
        created,
      ])
    }
    await connection.query(RECORD_PROGRAM, [versionNumber(VERSION)])
    return { created }
  })

/** Ends an upgrade. Has no effect when there is none. Throws QueueTooNew for a deferd that is itself older than the queue. */
export const finishUpgrade = (connection: Connection, files = MIGRATIONS): Promise<Finish> =>
  alone(connection, async () => {
    const known = newestIn(files)
    // Waits for nodes that are joining, and keeps others from it.
    await connection.query('select 1 from queue for update')
    const { version, oldestKnown } = await schemaOf(connection, files)
    if (version > known) throw new QueueTooNew('in PostgreSQL', version, known)
    const older = await connection.query<OlderNode>('select name, program from node where knows < $1 order by name, id', [version])
    if (older.length > 0) return { older }
    const waiting = migrationsIn(files).filter((one) => one.finishes && one.version > oldestKnown && one.version <= version)
    for (const { sql } of waiting) await connection.command(sql)
    await connection.query('update queue set oldest_known = $1', [version])
    return { version }
  })

/** Triggers, rules and policies on the tables of the queue, which could change or hide mail. deferd makes none. */
const FOREIGN = `
  with own as (select to_regclass(name) as id from unnest(string_to_array($1, ',')) name)
  select 'trigger ' || tgname as what, tgrelid::regclass::text as "table" from pg_trigger
    where tgrelid in (select id from own) and not tgisinternal and tgenabled <> 'D'
  union all select 'rule ' || rulename, ev_class::regclass::text from pg_rewrite where ev_class in (select id from own) and ev_enabled <> 'D'
  union all select 'policy ' || polname, polrelid::regclass::text from pg_policy where polrelid in (select id from own)
  order by 1`

/** Throws DatabaseUnusable when another program has added a trigger, a rule or a policy to a table of the queue. */
export async function assertUnchanged(connection: Statements, files = MIGRATIONS): Promise<void> {
  const tables = migrationsIn(files).flatMap(({ sql }) => [...sql.matchAll(/^create (?:unlogged )?table (\w+)/gm)].map(([, name]) => name))
  const [first] = await connection.query<{ what: string; table: string }>(FOREIGN, [tables.join(',')])
  if (first === undefined) return
  throw new DatabaseUnusable(
    `queue_database: the ${first.what} on the table ${first.table} is not of deferd, and could change mail: drop it, or use a database of its own for the queue`,
  )
}

/** Throws NoSuchQueue, QueueTooNew or DatabaseUnusable unless the database holds a queue that this deferd can read. */
export async function assertReadable(connection: Statements): Promise<void> {
  if ((await schemaOf(connection)).version === 0) throw new NoSuchQueue('the database of queue_database')
}

interface StoredSchema extends Schema {
  readonly shards: number
  readonly writtenBy: number | null
}

/** A queue of an older deferd has no column written_by. */
const STORED_SCHEMA = `
  select version, oldest_known as "oldestKnown", shards, (to_jsonb(queue) ->> 'written_by')::int as "writtenBy" from queue`

/** State of the tables. Throws QueueTooNew or DatabaseUnusable when this deferd cannot use them. */
export async function schemaOf(connection: Statements, files = MIGRATIONS): Promise<Schema> {
  const [found] = await connection.query<{ exists: boolean }>("select to_regclass('queue') is not null as exists")
  if (found?.exists !== true) return { version: 0, oldestKnown: 0 }
  const [queue] = await connection.query<StoredSchema>(STORED_SCHEMA)
  const { version, oldestKnown, shards, writtenBy } = queue ?? { version: 0, oldestKnown: 0, shards: SHARDS, writtenBy: null }
  const known = newestIn(files)
  if (oldestKnown > known) throw new QueueTooNew('in PostgreSQL', oldestKnown, known, writtenBy)
  if (shards !== SHARDS)
    throw new DatabaseUnusable(`the queue has ${shards} shards, and this deferd needs ${SHARDS}: use the deferd that wrote it`)
  return { version, oldestKnown }
}
