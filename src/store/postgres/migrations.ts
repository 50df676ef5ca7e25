/**
 * Creates and migrates the tables of a queue. All missing migrations are applied in one transaction, which one node at a time runs;
 * migrations only add, so that nodes of the previous release go on meanwhile.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { NoSuchQueue, QueueTooNew } from '../errors.ts'
import { SHARDS } from '../membership/shards.ts'
import type { Connection, Statements } from './session/database-connection.ts'
import { DatabaseUnusable } from './session/database-errors.ts'

/** The package's `migrations/postgres` folder, at the same path from src/store/postgres and from dist/store/postgres. */
const FOLDER = fileURLToPath(new URL('../../../migrations/postgres/', import.meta.url))

/** Key of the advisory lock: "defd" in ASCII. */
const LOCK = 0x64656664

interface Migration {
  readonly version: number
  readonly sql: string
}

const migrations = (): readonly Migration[] =>
  readdirSync(FOLDER)
    .filter((file) => /^\d{4}_.*\.sql$/.test(file))
    .toSorted()
    .map((file) => ({ version: Number(file.slice(0, 4)), sql: readFileSync(join(FOLDER, file), 'utf8') }))

/**
 * Applies the missing migrations and returns whether the queue was created. Throws QueueTooNew for a queue of a newer deferd, and
 * DatabaseUnusable when the number of shards differs.
 */
export async function migrate(connection: Connection): Promise<{ readonly created: boolean }> {
  await connection.command('begin')
  try {
    await connection.query('select pg_advisory_xact_lock($1)', [LOCK])
    const from = await versionOf(connection)
    const missing = migrations().filter(({ version }) => version > from)
    for (const { sql } of missing) await connection.command(sql)
    const [newest] = missing.slice(-1)
    if (newest !== undefined) await connection.query('update queue set version = $1', [newest.version])
    await connection.command('commit')
    return { created: from === 0 }
  } catch (error) {
    if (!connection.isLost) await connection.command('rollback')
    throw error
  }
}

/** Throws NoSuchQueue, QueueTooNew or DatabaseUnusable unless the database holds a queue that this deferd can read. */
export async function assertReadable(connection: Statements): Promise<void> {
  if ((await versionOf(connection)) === 0) throw new NoSuchQueue('the database of queue_database')
}

/** Version of the tables; 0 when there are none. */
async function versionOf(connection: Statements): Promise<number> {
  const [found] = await connection.query<{ exists: boolean }>("select to_regclass('queue') is not null as exists")
  if (found?.exists !== true) return 0
  const [queue] = await connection.query<{ version: number; shards: number }>('select version, shards from queue')
  const { version, shards } = queue ?? { version: 0, shards: SHARDS }
  const known = migrations().at(-1)?.version ?? 0
  if (version > known) throw new QueueTooNew('in PostgreSQL', version, known)
  if (shards !== SHARDS)
    throw new DatabaseUnusable(`the queue has ${shards} shards, and this deferd needs ${SHARDS}: use the deferd that wrote it`)
  return version
}
