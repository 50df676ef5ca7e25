/** SQL statements of the node table: beats, the nodes, and arrivals. `$1` is this node. */

/** Counts a beat. No row: this node was taken over. It writes no log, since `pulse` is unlogged, and so waits for no standby. */
export const beat = `
  insert into pulse select id, 1 from node where id = $1
  on conflict (node) do update set beat = pulse.beat + 1 returning beat`

export const nodes = `
  select n.id, n.name, coalesce(p.beat, 0) as beat, coalesce(s.shards, 0)::int as shards,
    (select count(*) from recipient where leased_by = n.id)::int as leased, n.program, n.settings, n.draining,
    (extract(epoch from n.joined_at) * 1000)::bigint as "joinedAt"
  from node n left join pulse p on p.node = n.id
    left join (select owner, count(*) as shards from shard group by owner) s on s.owner = n.id
  order by n.id`

export const shards = `
  select (select count(*) from shard where owner is null)::int as free,
    coalesce((select json_agg(id order by id) from shard where owner = $1), '[]') as mine,
    (extract(epoch from clock_timestamp()) * 1000)::bigint as "databaseTime"`

export const setDraining = 'update node set draining = $2 where id = $1 returning id'

/** Ends the sessions of another node, whose open transaction keeps its row from being deleted. */
export const endSessions = `
  select pg_terminate_backend(pid, 1000) from pg_stat_activity
  where application_name like 'deferd ' || $1::bigint || ' %' and usename = current_user`

/** Arrivals of own shards. They stay until the next call confirms that this answer was received. */
export const arrivals = `
  select ctid::text as row, kind, destination, due_at as "dueAt", revive, message, record from arrival
  where shard = any (array(select id from shard where owner = $1)) limit 10000`

/** A row is never changed, so its place identifies it. */
export const confirmArrivals = 'delete from arrival where ctid = any ($1::text[]::tid[])'
