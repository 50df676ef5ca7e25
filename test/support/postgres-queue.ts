/**
 * Queues in PostgreSQL for tests: one server per test file, and a queue for each test. A new queue is the emptied former one, which
 * takes a tenth of the time of new tables.
 */
import { afterAll, beforeAll } from 'vitest'
import { parseDatabaseUrl, type DatabaseUrl } from '../../src/config/values/database-url.ts'
import { openSession } from '../../src/store/postgres/session/client.ts'
import { Connection } from '../../src/store/postgres/session/database-connection.ts'
import { migrate } from '../../src/store/postgres/migrations.ts'
import { reasonWithoutPostgres, startPostgres, type PostgresServer } from './postgres-server.ts'

const reason = reasonWithoutPostgres()

/** Whether tests with PostgreSQL are skipped, and the addition to their name that says why. */
export const WITHOUT_POSTGRES = { skip: reason !== null, why: reason === null ? '' : ` (skipped: ${reason})` }

export function urlOf(text: string): DatabaseUrl {
  const url = parseDatabaseUrl(text)
  if (url === null) throw new Error(`${text} is no URL`)
  return url
}

export const connectTo = async (url: DatabaseUrl, application = 'deferd test', pipeline = true): Promise<Connection> =>
  new Connection(await openSession({ url, durability: 'primary', application, pipeline }))

const TABLES = `node, pulse, message, recipient, chunk, staged, maildrop_file, attempt, history, destination, arrival, audit, operated,
  erasure, erasure_key, event, marked_batch, subscription, parked, kept_request, access_token, access_entry, sts_policy, provider, provider_member, provider_suspension, suppression, suppression_change, suppression_stop, schedule_run, domain_check, session, tls_result, tls_report, share_usage, quota_count, series, series_delta, backlog, queue_mark, kept_content, oauth_token, ask, traffic, moving, origin, kept_ids, records_taken, mover,
  moved_to`

/** Time limit of the creation of a cluster, in ms, on a machine that runs other tests too. */
const START_LIMIT = 60_000

const EMPTY = [
  ...TABLES.split(/,\s+/).map((table) => `delete from ${table}`),
  'update shard set owner = null',
  'update outbox set last = 0',
  'update queue set shares_since = null, shares_counter = null',
  'alter table message drop constraint if exists queue_moved',
  'alter sequence message_id restart',
].join(';')

/** Starts a server before the tests of the describe block that calls it, and removes it after them. */
export function usePostgres(): { readonly server: () => PostgresServer; readonly emptyQueue: (database?: string) => Promise<DatabaseUrl> } {
  let running: PostgresServer | undefined
  const cleaners = new Map<string, Connection>()
  const server = (): PostgresServer => {
    if (running === undefined) throw new Error('the server was not started')
    return running
  }
  beforeAll(async () => {
    running = await startPostgres()
    await cleanerOf('postgres')
  }, START_LIMIT)
  afterAll(async () => {
    for (const cleaner of cleaners.values()) await cleaner.end()
    await running?.remove()
  })
  /** A session of a database, which has the tables. A test may have restarted the server. */
  const cleanerOf = async (database: string): Promise<Connection> => {
    const known = cleaners.get(database)
    if (known?.isLost === false) return known
    if (known === undefined && database !== 'postgres') await server().createDatabase(database)
    const cleaner = await connectTo(urlOf(server().url(database)))
    if (known === undefined) await migrate(cleaner)
    cleaners.set(database, cleaner)
    return cleaner
  }
  return {
    server,
    emptyQueue: async (database = 'postgres') => {
      await (await cleanerOf(database)).command(EMPTY)
      return urlOf(server().url(database))
    },
  }
}
