/**
 * SQL statements about nodes. A transaction of a node takes a lock on the node's row first (`fence`) and keeps it to its end. Removing
 * the row waits for these transactions, and after it none of them can commit.
 */
import { recipientRange } from '../../sql/id-ranges.ts'

/** Fails with a division by zero when the node was taken over or its session is over. */
export const fence = 'select 1 / count(*) from (select 1 from node where id = $1 and session = $2 for share) fence'

/** The same, and fails when the node has missed a change of the providers ($3 is the last one that it has seen). */
export const fenceWithKeys = `
  select 1 / count(*) from (select 1 from node where id = $1 and session = $2 and keys = $3 for share) fence`

/** Number of the last change of the providers. No row when the node was taken over. */
export const keysOf = 'select node.keys, shares_since as "sharesSince" from node, queue where node.id = $1'

/** Number of the next node. */
export const nextNode = `select nextval('node_id') as id`

/** No row when an upgrade to a migration that the node does not know was finished meanwhile. */
export const joinNode = `
  insert into node (id, name, program, settings, hostname, draining, knows, keys)
  select $7, $1, $2, $3, $4, $5, $6::int, keys from (select keys from queue where oldest_known <= $6::int for share) allowed
  returning id`

/** Begins a new session of a node, after the transactions of the former. No row when the node was taken over. */
export const nextSession = 'update node set session = session + 1 where id = $1 returning session'

/**
 * Locks out the transactions of a node until the end of this one, which gives shards up: a transaction before it has committed, and one
 * after it sees the change.
 */
export const lockNode = 'select 1 from node where id = $1 for update'

/** Locks the row of the node that takes another one over: it may be taken over itself. */
export const shareNode = 'select id from node where id = $1 for share'

/** The last beat is read before `pulse` forgets it. */
export const removeNode = `
  delete from node where id = $1 and coalesce((select beat from pulse where pulse.node = $1), 0) = $2
  returning name, program, settings, joined_at::text as "joinedAt",
    coalesce((select at from pulse where pulse.node = $1), joined_at)::text as "seenAt"`

export const removeOwnNode = 'delete from node where id = $1 returning id'

/** Records that the node $8 has taken another one over. */
export const addLost = `
  insert into lost_node (name, node, program, joined_at, seen_at, lost_at, taker, shards, recipients)
  select $2, $1, $3, $4::timestamptz, $5::timestamptz, clock_timestamp(), name, $6, $7 from node where id = $8
  on conflict (name) do update set node = excluded.node, program = excluded.program, joined_at = excluded.joined_at,
    seen_at = excluded.seen_at, lost_at = excluded.lost_at, taker = excluded.taker, shards = excluded.shards, recipients = excluded.recipients`

/** Forgets that a node of the name was lost, because it runs again or is removed. */
export const removeLost = 'delete from lost_node where name = $1 returning name'

export const takeShards = `
  update shard set owner = $1, epoch = epoch + 1
  where id = any (array(select id from shard where owner is null order by id limit $2 for update skip locked)) returning id`

export const releaseShards = `
  update shard set owner = null, epoch = epoch + 1 where owner = $1 and id = any ($2::smallint[]) returning id`

export const freeShardsOf = 'update shard set owner = null, epoch = epoch + 1 where owner = $1 returning id'

/**
 * Ends the leases of a node that is gone. The count of delivery starts is kept, because the delivery may have ended the process. Tells the
 * other owners of shards in which the node had leases. Its own shards are read anew by those who take them.
 */
export const endLeasesOf = `
  with u as (update recipient set leased_by = null, suspect = delivery_starts >= $2 and not parks,
      state = case when parks then 'parked' else 'waiting' end
    where leased_by = $1 returning id, delivery_starts, shard, destination, due_at, state),
  told as (insert into arrival (shard, kind, destination, due_at)
    select shard, 'due', destination, min(due_at) from u
    where state = 'waiting' and (select owner from shard where shard.id = u.shard) <> $1 group by shard, destination)
  select id, delivery_starts as starts from u`

/** Moves a message to `corrupt`, except for recipients that another node has in delivery. */
export const parkRecipientsOf = `
  update recipient set parks = true, suspect = false, state = case state when 'waiting' then 'parked' else state end
  where id ${recipientRange('$1::bigint')} and settled_at is null`
export const setCorrupt = `
  update message set placement = 'corrupt', deleted_at = null, why = $2 where id = $1 and placement <> 'corrupt'
  returning created_at as "createdAt", sender`

/** Deletes the contents that a node was receiving. */
export const deleteStagedOf = `
  with s as (delete from staged where node = $1 returning content_id),
    c as (delete from chunk where content_id = any (array(select content_id from s)))
  select count(*) as swept from s`

/** Keeps the counts of shares of a node that is gone, which are part of the sums. */
export const keepSharesOf = `
  with gone as (delete from share_usage where node = $1 returning share, messages, bytes)
  insert into share_usage (node, share, messages, bytes) select 0, share, messages, bytes from gone order by share
  on conflict (node, share) do update
    set messages = share_usage.messages + excluded.messages, bytes = share_usage.bytes + excluded.bytes`
/** Takes a message that becomes corrupt from the counts, in a row of the node $2. */
export const uncountCorrupt = `
  insert into share_usage (node, share, messages, bytes)
  select $2, coalesce(share, ''), -1, -size from message
  where id = $1 and placement in ('queued', 'hold') and (select shares_since from queue) is not null
  on conflict (node, share) do update
    set messages = share_usage.messages + excluded.messages, bytes = share_usage.bytes + excluded.bytes`

export const forgetPulse = 'delete from pulse where node = $1'
export const forgetMarkedBatch = 'delete from marked_batch where node = $1'
export const forgetRecalls = 'delete from recall where node = $1 or asker = $1'
export const forgetQuestions = 'delete from ask where node = $1'
