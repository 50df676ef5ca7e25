/**
 * Vacuums the tables of mail as soon as many rows have died. Autovacuum looks once a minute, in which a busy queue grows by gigabytes.
 * The owner of shard 0 does it for all nodes.
 */
import type { OwnerId } from '../../mail/message.ts'
import { seconds, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import { rethrowUnlessUnavailable } from '../queue-store.ts'
import type { Connection, Statements } from './session/database-connection.ts'

/** Number of dead rows from which a vacuum is worth its reads. */
export const VACUUM_FROM = 50_000
const LOOK_EVERY: Duration = seconds(5)
/** Most of the time that vacuums may take: one in ten parts. */
const REST = 10

/**
 * Time until the next look after one that took `took`. While somebody holds an old snapshot, a vacuum reads ever more rows and removes none.
 */
export const pauseAfter = (took: Duration): Duration => Math.max(LOOK_EVERY, REST * took)

/** The tables with many dead rows; none unless this node owns shard 0. */
const tablesToVacuum = `
  select relname as name from pg_stat_user_tables
  where schemaname = current_schema() and relname in ('message', 'recipient', 'attempt', 'chunk') and n_dead_tup >= $2
    and exists (select 1 from shard where id = 0 and owner = $1)`

interface VacuumDeps {
  readonly node: OwnerId
  readonly clock: Clock
  readonly reading: Statements
  readonly connect: () => Promise<Connection>
  readonly from: number
}

/** Looks for tables to vacuum. A stop waits for the vacuum under way. */
export function vacuumTables({ node, clock, reading, connect, from }: VacuumDeps): PeriodicTask {
  const look = async (): Promise<void> => {
    const tables = await reading.query<{ name: string }>(tablesToVacuum, [node, from])
    if (tables.length > 0) await vacuum(await connect(), tables)
  }
  return every(clock, pauseAfter, look, { failed: rethrowUnlessUnavailable })
}

/** Uses a session of its own, because a vacuum delays the statements behind it. */
async function vacuum(connection: Connection, tables: readonly { readonly name: string }[]): Promise<void> {
  try {
    await connection.command(`vacuum (skip_locked) ${tables.map(({ name }) => name).join(', ')}`)
  } catch {
    connection.destroy()
  } finally {
    await connection.end()
  }
}
