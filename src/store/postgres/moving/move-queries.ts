/**
 * SQL statements of moves between queues. A message is locked with its recipients before it leaves, and its rows are replaced by one
 * row of JSON, so that no other statement finds it.
 */
import { notKept } from '../writing/departed-queries.ts'
import { messageIdOf, recipientRange } from '../../sql/id-ranges.ts'
import { furtherArrays, MARK_NEW, WRITTEN, WRITTEN_ARRAYS } from '../writing/message-columns.ts'

// --- state

export const moveState = `
  select (select id::text from queue) as identity, (select name from moved_to) as "movedTo", (select count(*) from moving)::int as leaving,
    (select count(*) from origin where record is not null)::int as arriving, coalesce((select max(id) from message), 0) as last`

/** Waits for the transactions of the former mover, which hold a lock of the row (lockMover). */
export const claimMoves = `
  insert into mover (source, node) values ($1, $2) on conflict (source) do update set node = excluded.node`
/** The mover, when it is another node. The lock keeps the row until the end of the transaction. */
export const lockMover = 'select node from mover where source = $1 for share'

// --- source

/** Messages in the order of ids, and whether a recipient in delivery keeps them, or a notice that is due unless $4 is true. */
export const sliceToMove = `
  select message.id, message.recipients, exists (select 1 from recipient r where r.id ${recipientRange('message.id')}
      and (r.state = 'leased' or (r.notice_due is not null and not $4::boolean))) as stays
  from message where message.id > $1 and message.id <= $2 order by message.id limit $3`
/** Columns of messages that operations do not read. */
export const stateToMove = 'select id, warn_at, why from message where id = any ($1::bigint[])'

/** Moves contents out of the rows of their messages. */
export const keepContents = `
  insert into chunk (content_id, number, crc, data)
  select content_id, 0, content_crc, content from message where id = any ($1::bigint[]) and content is not null`
export const insertMoving = `
  insert into moving (message, content_id, shares_content, target, record)
  select message, content_id, shares_content, $1, record
  from unnest($2::bigint[], $3::bigint[], $4::boolean[], $5::text[]) as new (message, content_id, shares_content, record)`
export const deleteQueued = `
  with r as (delete from recipient using unnest($1::bigint[]) as gone (id) where recipient.id ${recipientRange('gone.id')}),
    a as (delete from attempt using unnest($1::bigint[]) as gone (id) where attempt.recipient ${recipientRange('gone.id')})
  delete from message where id = any ($1::bigint[])`

/** Messages of an earlier call with the same selection, whose answer was lost. */
export const takenOutBefore = `
  select message, target, record from moving where message > $1 and message <= $2 order by message limit $3`
export const movingRows = 'select message, target, record from moving order by message limit $1'
export const lockMoving = `
  select message, content_id, shares_content, target, record from moving where message = any ($1::bigint[]) order by message for update`
/** Contents of these messages that other messages may share. */
export const sharedContents = 'select content_id as content from moving where message = any ($1::bigint[]) and shares_content'
export const deleteMoving = 'delete from moving where message = any ($1::bigint[])'
/** Deletes messages that the target has, and their contents unless another message shares them. */
export const forgetMoved = `
  with h as (insert into history (message, left_at, node, record)
      select message, $2, $1, record from unnest($3::bigint[], $4::text[]) as new (message, record)),
    c as (delete from chunk where content_id = any ($5::bigint[])
      and (select true from message other where other.shares_content and other.content_id = chunk.content_id limit 1) is null
      and (select true from moving other where other.shares_content and other.content_id = chunk.content_id
        and other.message <> all ($3::bigint[]) limit 1) is null and ${notKept("'{}'::bigint[]")})
  delete from moving where message = any ($3::bigint[])`

/** Waits for transactions that have taken a number and are not committed, so that no row appears behind one that was read. */
export const lockHistory = 'lock table history in share mode'
export const historyAfter = 'select seq, message, left_at as "leftAt", record from history where seq > $1 order by seq limit $2'

export const movedTo = 'select name from moved_to'
export const isInUse = `
  select exists (select 1 from message) or exists (select 1 from moving)
    or exists (select 1 from origin where record is not null) as used`
/** Waits for the transactions that insert messages. Later ones fail. */
export const refuseMail = 'alter table message add constraint queue_moved check (false) not valid'
export const acceptMail = 'alter table message drop constraint queue_moved'
export const markMoved = 'insert into moved_to (name) values ($1)'
export const unmarkMoved = 'delete from moved_to returning name'

// --- a message enters a queue with its state

export const classNames = 'select name from class'
export const restoreMessages = `
  with new as (insert into message (${WRITTEN}, warn_at, deleted_at, recipients, warnings, home, shares_content, forced_expire, placement, why)
    select * from unnest(${WRITTEN_ARRAYS},
      ${furtherArrays('bigint', 'bigint', 'int', 'int', 'smallint', 'boolean', 'boolean', 'text', 'text')})
    returning id, from_header)
  ${MARK_NEW}`
export const restoreRecipients = `
  insert into recipient (id, due_at, kept_due_at, expires_at, settled_at, steps, attempts, delivery_starts, shard, home, suspect, parks,
    state, destination, address, notify, orcpt, notice_due, last, band)
  select new.*, coalesce((select class.band from message join class on class.name = message.class where message.id = ${messageIdOf('new.id')}), 0)
  from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::int[], $7::int[], $8::int[],
    $9::smallint[], $10::smallint[], $11::boolean[], $12::boolean[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[],
    $18::text[], $19::text[]) as new (id)`
/** Destinations of messages with waiting mail. */
export const destinationsOf = `
  select distinct r.destination from unnest($1::bigint[]) as m (id) cross join lateral (
    select destination from recipient where recipient.id ${recipientRange('m.id')} and (state = 'waiting') is true offset 0) r`
/** Tells the owners of messages about notices and warnings. */
export const tellOfNotices = `
  insert into arrival (shard, kind, message)
  select home, 'notices', message from unnest($1::smallint[], $2::bigint[]) as new (home, message) returning shard`

// --- target

/**
 * Locks out nextval, which takes a weaker lock of the sequence, until the end of the transaction. Changes nothing: a changed parameter
 * rewrites the sequence, and sessions that read it at that moment fail with XX001.
 */
export const lockIds = 'alter sequence message_id owned by none'
export const lastId = 'select case when is_called then last_value else last_value - 1 end as last from message_id'
export const keepIds = 'insert into kept_ids (source, first, last) values ($1, $2, $3)'
export const raiseIds = `select setval('message_id', $1)`
/** The ids that are kept for the source and name nothing in this queue. */
export const freeIds = `
  select id from unnest($2::bigint[]) as asked (id)
  where (select true from kept_ids where source = $1 and first <= asked.id and last >= asked.id limit 1)
    and (select true from message where message.id = asked.id) is null
    and (select true from history where history.message = asked.id limit 1) is null
    and (select true from moving where moving.message = asked.id) is null
    and (select true from origin where origin.id = asked.id) is null`
export const originsOf = `
  select asked.n::int as n, origin.queue_id as "queueId" from unnest($2::bigint[], $3::bigint[]) with ordinality as asked (message, created_at, n)
    cross join lateral (select queue_id from origin where source = $1 and origin.message = asked.message
      and origin.created_at = asked.created_at offset 0) origin`
export const insertOrigins = `
  insert into origin (id, source, message, created_at, queue_id, record)
  select id, $1, message, created_at, queue_id, record
  from unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[]) as new (id, message, created_at, queue_id, record)`
export const arrivingRows = `
  select id as message, record from origin where source = $1 and record is not null order by id limit $2 for update`
export const admitOrigins = 'update origin set record = null, admitted_at = $2 where id = any ($1::bigint[])'

/** Saves the state of a destination without one, and tells the owner of its shard. */
export const addDestination = `
  with added as (insert into destination (name, shard, dead_until, probe_interval, suspended_by, suspended_until, suspend_reason, site_status)
      values ($1, $2, $4, $5, $6, $7, $8, $9) on conflict (name) do nothing returning shard)
  insert into arrival (shard, kind, record) select shard, 'destinations', $3 from added returning shard`

export const recordsTaken = 'select history, audit from records_taken where source = $1'
export const saveRecordsTaken = `
  insert into records_taken (source, history, audit) values ($1, $2, $3)
  on conflict (source) do update set history = excluded.history, audit = excluded.audit`
export const insertHistory = `
  with new as (insert into history (message, left_at, node, record)
    select message, left_at, $1, record from unnest($2::bigint[], $3::bigint[], $4::text[]) with ordinality as new (message, left_at, record, n)
    order by n returning message)
  insert into unindexed (message) select message from new on conflict do nothing`
