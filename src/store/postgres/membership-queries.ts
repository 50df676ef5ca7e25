/** SQL statements of the node table: beats, the nodes, arrivals and recalls. `$1` is this node. */
import { recipientRange } from '../sql/id-ranges.ts'

/**
 * Counts a beat. No row: this node was taken over. It writes no log, since `pulse` is unlogged, and so waits for no standby. A crash of
 * the server empties `pulse`: the count begins with the time in ms, so that no number comes again.
 */
export const beat = `
  insert into pulse (node, beat) select id, (extract(epoch from clock_timestamp()) * 1000)::bigint from node where id = $1
  on conflict (node) do update set beat = pulse.beat + 1, at = clock_timestamp() returning beat`

/** The leases of nodes are not counted: while somebody holds an old snapshot, a count reads all leases since then. */
export const nodes = `
  select n.id, n.name, coalesce(p.beat, 0) as beat,
    (extract(epoch from clock_timestamp() - coalesce(p.at, n.joined_at)) * 1000)::bigint as "beatAge", coalesce(s.shards, 0)::int as shards,
    n.program, n.settings, n.hostname, n.draining, (extract(epoch from n.joined_at) * 1000)::bigint as "joinedAt"
  from node n left join pulse p on p.node = n.id
    left join (select owner, count(*) as shards from shard group by owner) s on s.owner = n.id
  order by n.id`

export const shards = `
  select (select count(*) from shard where owner is null)::int as free,
    coalesce((select json_agg(id order by id) from shard where owner = $1), '[]') as mine,
    (extract(epoch from clock_timestamp()) * 1000)::bigint as "databaseTime"`

/** Wakes the node by a hint on the channel $3 with the payload $4. */
export const setDraining = `
  with changed as (update node set draining = $2 where id = $1 returning id)
  select id, pg_notify($3, $4) from changed`

export const setParameters = 'update node set settings = $2, hostname = $3 where id = $1'

/** Ends the sessions of another node, whose open transaction keeps its row from being deleted. */
export const endSessions = `
  select pg_terminate_backend(pid, 1000) from pg_stat_activity
  where application_name like 'deferd ' || $1::bigint || ' %' and usename = current_user`

/** Arrivals of own shards. They stay until the next call confirms that this answer was received. */
export const arrivals = `
  select ctid::text as row, pg_relation_filenode('arrival')::bigint as file, kind, destination, due_at as "dueAt", revive, message, record from arrival
  where shard = any (array(select id from shard where owner = $1)) limit 10000`

/**
 * A row is never changed, so its place in the file of the table identifies it. VACUUM FULL writes another file. The commit waits neither for
 * the disk nor for a standby, since an arrival may come again.
 */
export const confirmArrivals = `
  delete from arrival where ctid = any ($1::text[]::tid[]) and pg_relation_filenode('arrival')::bigint = $2
    and (select set_config('synchronous_commit', 'off', true)) is not null`

/** Recalls of other nodes without an answer. */
export const recalls = `
  select asker, number, to_json(messages) as messages, destination, rests from recall where node = $1 and answer is null order by asker, number`

/** Asks the nodes that lease mail of messages ($3); for a destination ($4), those that own shards. */
export const recall = `
  insert into recall (asker, number, node, messages, destination, rests)
  select $1, $2, node, $3, $4, $5 from (
    select leased_by as node from unnest($3::bigint[]) as m (id) cross join lateral (
      select leased_by from recipient where recipient.id ${recipientRange('m.id')} and (leased_by <> $1) is true offset 0) leased
    union select owner from shard where $4::text is not null and (owner <> $1) is true) asked
  on conflict do nothing`
export const recalledNodes = 'select node from recall where asker = $1 and number = $2'
/** Answers of those of the nodes ($3) that are not gone. */
export const recallAnswers = `
  select n.id as node, r.answer from node n left join recall r on r.node = n.id and r.asker = $1 and r.number = $2
  where n.id = any ($3::bigint[])`
export const endRecall = 'delete from recall where asker = $1 and number = $2'
export const answerRecall = 'update recall set answer = $4 where node = $1 and asker = $2 and number = $3'

/** Questions of commands to this node that have no answer yet. */
export const questions = `select id, what from ask where node = $1 and answer is null order by id`

export const answer = 'update ask set answer = $2 where id = $1'

/** Asks nodes. `$1` is their numbers. */
export const ask = `
  insert into ask (node, what) select id, $2 from unnest($1::bigint[]) id returning id, node`

export const answers = 'select id, node, answer from ask where id = any ($1::bigint[]) and answer is not null'

export const removeQuestions = 'delete from ask where id = any ($1::bigint[])'

/** Nodes as commands list them. The age of a beat is measured by the clock of the database. */
export const listedNodes = `
  select n.id, n.name, n.program, n.settings, n.draining, (extract(epoch from n.joined_at) * 1000)::bigint as "joinedAt",
    (extract(epoch from clock_timestamp() - coalesce(p.at, n.joined_at)) * 1000)::bigint as "beatAge", coalesce(p.beat, 0) as beat,
    (select count(*) from shard where owner = n.id)::int as shards,
    (select count(*) from recipient where leased_by = n.id)::int as leased
  from node n left join pulse p on p.node = n.id where n.settings <> '' order by n.name, n.id`

export const lostNodes = `
  select name, node as id, program, taker, shards, recipients,
    (extract(epoch from joined_at) * 1000)::bigint as "joinedAt", (extract(epoch from lost_at) * 1000)::bigint as "lostAt",
    (extract(epoch from clock_timestamp() - seen_at) * 1000)::bigint as "beatAge"
  from lost_node order by name`

/** Owner of each shard, by number: the name of its node, or null. */
export const shardOwners = `
  select coalesce(json_agg(n.name order by s.id), '[]') as names from shard s left join node n on n.id = s.owner`
