/**
 * Sessions of the database of a queue. A session is given out only on a server that accepts writes and on the terms of
 * database-terms.ts, which are checked at every connection. Nothing reconnects by itself: the holder of a lost session opens another.
 */
import pg from 'pg'
import { errorMessage } from '../../../system/caught-error.ts'
import { DatabaseAway, DatabaseUnusable } from '../../membership/database-errors.ts'
import type { ServerUrl } from '../../../config/values/database-url.ts'
import type { QueueDatabase } from '../../membership/queue-database.ts'
import { refusal, type DatabaseFacts } from './database-terms.ts'

export interface SessionTerms extends QueueDatabase {
  /** Name of the session in pg_stat_activity: `deferd NODE w` for the one that writes. */
  readonly application: string
  /** Whether statements are sent before the answers to earlier ones. */
  readonly pipeline?: boolean
  /** Further session settings, as PostgreSQL shows them. */
  readonly settings?: Readonly<Record<string, string>>
}

/**
 * Settings of every session, as PostgreSQL shows them. Plans do not depend on statistics: those of a queue that was empty at the last
 * ANALYZE would lead to scans of the whole table.
 */
const SESSION_SETTINGS: Readonly<Record<string, string>> = {
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  jit: 'off',
  plan_cache_mode: 'force_generic_plan',
  idle_in_transaction_session_timeout: '5s',
  lock_timeout: '1500ms',
  client_min_messages: 'warning',
}

/** Settings without effect on a Unix socket, which are therefore not read back. The server notices the loss of its client in 11 s. */
const SOCKET_SETTINGS = ['tcp_keepalives_idle=5', 'tcp_keepalives_interval=2', 'tcp_keepalives_count=3', 'tcp_user_timeout=10s']

/** Time limits of a connection and of its first statements, in ms. */
const CONNECT_LIMIT = 5_000
const KEEPALIVE_AFTER = 5_000

/** SQLSTATEs of a connection that no retry changes: wrong password, unknown user, unknown database, missing right. */
const LASTING: ReadonlySet<string> = new Set(['28P01', '28000', '3D000', '42501'])

/** Opens a session on the first server that accepts writes. Rejects with DatabaseAway or DatabaseUnusable. */
export async function openSession(terms: SessionTerms): Promise<pg.Client> {
  const failures: (DatabaseAway | DatabaseUnusable)[] = []
  for (const server of terms.url.servers) {
    try {
      return await sessionAt(server, terms)
    } catch (error) {
      if (!(error instanceof DatabaseAway || error instanceof DatabaseUnusable)) throw error
      failures.push(error)
    }
  }
  const text = failures.map(({ message }) => message).join('; ')
  throw failures.every((failure) => failure instanceof DatabaseUnusable) ? new DatabaseUnusable(text) : new DatabaseAway(text)
}

async function sessionAt(server: ServerUrl, terms: SessionTerms): Promise<pg.Client> {
  const settings = { ...SESSION_SETTINGS, ...terms.settings }
  const client = new pg.Client({
    connectionString: server.url,
    application_name: terms.application,
    options: [terms.url.options, ...[...written(settings), ...SOCKET_SETTINGS].map((setting) => `-c ${setting}`)].join(' ').trim(),
    pipeline: terms.pipeline ?? false,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_AFTER,
    connectionTimeoutMillis: CONNECT_LIMIT,
    types: { getTypeParser },
  })
  // Without a listener, the error event of a lost connection would end the process. Statements and `end` report the loss.
  client.on('error', () => undefined)
  try {
    await client.connect()
    await examine(server, client, terms, settings)
    return client
  } catch (cause) {
    client.end().catch(() => undefined)
    throw atServer(server, cause)
  }
}

const written = (settings: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(settings).map(([name, value]) => `${name}=${value.replaceAll(/[\\ ]/g, '\\$&')}`)

function atServer({ name }: ServerUrl, cause: unknown): DatabaseAway | DatabaseUnusable {
  if (cause instanceof DatabaseAway || cause instanceof DatabaseUnusable) return cause
  const text = `queue_database: cannot use the server ${name}: ${errorMessage(cause)}`
  if (cause instanceof pg.DatabaseError && LASTING.has(cause.code ?? '')) return new DatabaseUnusable(text, { cause })
  return new DatabaseAway(text, { cause })
}

interface FactsRow extends Omit<DatabaseFacts, 'backends' | 'missing'> {
  readonly standby: boolean
  readonly backend: number
  readonly settings: Readonly<Record<string, string | null>>
}

// No table of the catalogue is read for a setting: current_setting() with `true` answers null for one that the server does not know.
const FACTS = `
select version() as version, current_setting('server_version_num')::int as "versionNumber", current_setting('server_encoding') as encoding,
  current_setting('fsync', true) as fsync, current_setting('full_page_writes', true) as "fullPageWrites",
  current_setting('synchronous_commit') as "synchronousCommit", current_setting('synchronous_standby_names', true) as "standbyNames",
  current_setting('default_transaction_isolation') as isolation, pg_backend_pid() as backend,
  pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as standby,
  (select json_object_agg(name, current_setting(name, true)) from unnest($1::text[]) name) as settings`

async function examine(
  { name }: ServerUrl,
  client: pg.Client,
  { durability }: SessionTerms,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const limit = { query_timeout: CONNECT_LIMIT }
  const first = await client.query<FactsRow>({ text: FACTS, values: [Object.keys(settings)], ...limit })
  const second = await client.query<{ backend: number }>({ text: 'select pg_backend_pid() as backend', ...limit })
  const [facts] = first.rows
  if (facts === undefined) throw new DatabaseAway(`queue_database: the server ${name} does not answer`)
  if (facts.standby) {
    const remedy = 'name the primary server too (queue_database takes several hosts)'
    throw new DatabaseUnusable(`queue_database: the server ${name} is a standby and accepts no writes (pg_is_in_recovery): ${remedy}`)
  }
  const missing = Object.keys(settings).filter((setting) => facts.settings[setting] !== settings[setting])
  const backends = [facts.backend, second.rows[0]?.backend ?? 0] as const
  const why = refusal({ ...facts, missing, backends }, durability)
  if (why !== null) throw new DatabaseUnusable(`queue_database: cannot use the server ${name}: ${why}`)
}

const INT8 = 20

/** Reads bigint as a number. Throws DatabaseUnusable for one above 2^53, which no column of a sound queue holds. */
function wholeNumber(text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value)) return value
  throw new DatabaseUnusable(
    `queue_database: the queue has the number ${text}, which is no safe integer: another program has changed a sequence (setval) or a row: undo that, or restore a backup`,
  )
}

const getTypeParser = ((oid: number, format?: 'text' | 'binary') =>
  oid === INT8 && format !== 'binary' ? wholeNumber : (pg.types.getTypeParser(oid, format) as unknown)) as typeof pg.types.getTypeParser
