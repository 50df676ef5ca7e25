/**
 * Watches the database of a queue: open transactions that keep dead rows from being removed, the number of dead rows, and the standbys. It
 * reads views of statistics only, every 15 s.
 */
import { seconds, type Clock, type Duration } from '../../system/clock.ts'
import { every, type PeriodicTask } from '../../system/periodic-task.ts'
import { rethrowUnlessUnavailable } from '../queue-store.ts'
import type { DatabaseState } from '../membership/database-state.ts'
import type { Statements } from './session/database-connection.ts'

const LOOK_EVERY: Duration = seconds(15)

/** A vacuum keeps no rows of others, and the own statement is not of interest. */
const OTHERS = `a.pid <> pg_backend_pid() and a.backend_type <> 'autovacuum worker' and a.query not ilike 'vacuum%'`

const databaseState = `
  with open as (
    select (extract(epoch from clock_timestamp() - a.xact_start) * 1000)::bigint as age,
      a.application_name || ' of ' || a.usename || ', process ' || a.pid as of
    from pg_stat_activity a
    where a.datname = current_database() and a.xact_start is not null and (a.backend_xmin is not null or a.backend_xid is not null)
      and ${OTHERS}
    union all
    select (extract(epoch from clock_timestamp() - prepared) * 1000)::bigint, 'prepared transaction ' || gid
    from pg_prepared_xacts where database = current_database()),
  horizon as (
    select max(age(a.backend_xmin)) as age from pg_stat_activity a where ${OTHERS}
    union all select max(age(xmin)) from pg_replication_slots
    union all select max(age(transaction)) from pg_prepared_xacts where database = current_database())
  select (extract(epoch from clock_timestamp()) * 1000)::bigint as at,
    (select json_build_object('age', age, 'of', of) from open order by age desc limit 1) as oldest,
    coalesce((select max(age) from horizon), 0)::int as horizon,
    (select json_agg(json_build_object('table', relname, 'rows', n_dead_tup) order by relname) from pg_stat_user_tables
      where schemaname = current_schema() and relname in ('message', 'recipient', 'attempt', 'chunk', 'history')) as "deadRows",
    case when pg_has_role(current_user, 'pg_read_all_stats', 'usage') then (
      select coalesce(json_agg(json_build_object('name', application_name, 'sync', sync_state,
          'behind', greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn), 0),
          'lag', coalesce((extract(epoch from flush_lag) * 1000)::bigint, 0)) order by application_name), '[]')
      from pg_stat_replication where flush_lsn is not null) end as standbys`

/** Calls `seen` with each state that was read. */
export function watchDatabase(clock: Clock, reading: Statements, seen: (state: DatabaseState) => void): PeriodicTask {
  const look = async (stopping: AbortSignal): Promise<void> => {
    const [state] = await reading.query<DatabaseState>(databaseState)
    if (state !== undefined && !stopping.aborted) seen(state)
  }
  return every(clock, LOOK_EVERY, look, { immediate: true, failed: rethrowUnlessUnavailable })
}
