/**
 * Observes in the database, by triggers, which node changes the recipients that a node has leased, and when nodes are removed. The
 * triggers do not depend on the statements of deferd.
 */
import type { PostgresServer } from '../postgres-server.ts'
import { hidingTriggers } from './hidden-triggers.ts'

const TABLES = `
create table watched (kind text not null, node bigint not null, name text, at timestamptz not null default clock_timestamp());

create function watch_lease() returns trigger language plpgsql as $$
declare acting bigint := substring(current_setting('application_name') from '^deferd (\\d+) w$')::bigint;
begin
  if acting is not null and (acting <> old.leased_by or not exists (select 1 from node where id = acting)) then
    insert into watched (kind, node) values ('foreign outcome', acting);
  end if;
  return null;
end $$;
create trigger watch_lease after update or delete on recipient for each row when (old.leased_by is not null)
  execute function watch_lease();

create function watch_node() returns trigger language plpgsql as $$
begin
  insert into watched (kind, node, name) values (tg_argv[0], coalesce(old.id, new.id), coalesce(old.name, new.name));
  return null;
end $$;
create trigger watch_join after insert on node for each row execute function watch_node('joined');
create trigger watch_removal after delete on node for each row execute function watch_node('removed');
${hidingTriggers('watch_lease', 'watch_join', 'watch_removal')}`

/**
 * Time from the removal of a node to the joining of the next one of the same name, in ms since the epoch. A restarted node that joins
 * before its former number is removed is not absent.
 */
export interface Absence {
  readonly name: string
  readonly from: number
  readonly to: number
}

export interface Watched {
  /** Changes of leased recipients by a node that has not leased them, or that is removed. */
  readonly foreignOutcomes: number
  readonly absences: readonly Absence[]
  /** Number of nodes that were removed. */
  readonly removed: number
}

/** Begins to observe a queue whose tables exist. */
export const watchLeases = (server: PostgresServer): Promise<unknown> => server.query(TABLES)

export async function readWatch(server: PostgresServer): Promise<Watched> {
  const rows = await server.query(`select kind, node, name, extract(epoch from at) * 1000 as at from watched order by at`)
  const [newest, open] = [new Map<string, number>(), new Map<string, number>()]
  const absences: Absence[] = []
  for (const row of rows) {
    const [name, node, at] = [String(row['name']), Number(row['node']), Number(row['at'])]
    if (row['kind'] === 'removed' && node >= (newest.get(name) ?? 0)) open.set(name, at)
    if (row['kind'] !== 'joined') continue
    newest.set(name, node)
    const from = open.get(name)
    if (from !== undefined) absences.push({ name, from, to: at })
    open.delete(name)
  }
  const count = (what: string): number => rows.filter(({ kind }) => kind === what).length
  return { foreignOutcomes: count('foreign outcome'), absences, removed: count('removed') }
}
