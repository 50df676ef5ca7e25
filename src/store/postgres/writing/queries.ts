/**
 * SQL statements of new, leased and departing mail. Calls of one method share a statement, whose parameters are arrays. The plans do
 * not depend on statistics (test/store/postgres/query-plans.test.ts): rows are found by `id = any (…)`, and `(…) is true` hides a
 * condition from the planner that would otherwise choose an index by it.
 *
 * $1 is the node, in every statement about leases or shards.
 */
import { NO_CLASS } from '../../../config/values/mail-classes.ts'
import { notKept } from './departed-queries.ts'
import { messageIdOf, recipientRange } from '../../sql/id-ranges.ts'
import { furtherArrays, MARK_NEW, WRITTEN, WRITTEN_ARRAYS } from './message-columns.ts'
import { MESSAGE_COLUMNS } from './rows.ts'

/** True for a shard of another node, or without an owner. */
export const isForeign = (shard: string): string =>
  `not exists (select 1 from shard where shard.id = ${shard} and (shard.owner = $1) is true)`

/** Common table expression that tells the owners of other shards of the waiting rows of `table`. */
const tellOwners = (table: string): string => `
  told as (insert into arrival (shard, kind, destination, due_at)
    select shard, 'due', destination, min(due_at) from ${table} where state = 'waiting' and ${isForeign(`${table}.shard`)}
    group by shard, destination returning shard)`

/**
 * Rows of arrays: `id bigint $2, state text $3`. With `unnest`, of which the planner expects ten rows, a join would compare each row with
 * each.
 */
export function rowsOf(columns: string): string {
  const parts = columns.split(', ').map((column) => column.split(' '))
  const fields = parts.map(([name, type, parameter]) => `(${parameter}::${type}[])[n] as ${name}`)
  const [, type, parameter] = parts[0] ?? []
  return `select ${fields.join(', ')} from generate_subscripts(${parameter}::${type}[], 1) as n`
}

/** Recipients that claimDue may lease: the condition of the index recipient_due. */
export const DUE_INDEX = `state = 'waiting' and not suspect and turn is null`

/** SQL expression for the earliest due time of any band of a destination, in the shard. */
export const earliestDueAt = (shard: string, destination: string): string => `
  (select min((select r.due_at from recipient r where r.shard = ${shard} and r.destination = ${destination} and r.band = known.band
    and ${DUE_INDEX} order by r.due_at limit 1)) from (select ${NO_CLASS} as band union all select band from class) as known)`

// --- intake

export const reserveIds = `select nextval('message_id') as id from generate_series(1, $1::int)`

export const insertMessages = `
  with new as (insert into message (${WRITTEN}, content_crc, recipients, home, placement, content)
    select * from unnest(${WRITTEN_ARRAYS}, ${furtherArrays('bigint', 'int', 'smallint', 'text', 'bytea')})
    returning id, from_header)
  ${MARK_NEW}`

export const insertRecipients = `
  insert into recipient (id, due_at, expires_at, leased_by, delivery_starts, shard, home, band, parks, state, destination, address, notify,
    orcpt)
  select id, due_at, expires_at, case state when 'leased' then $1::bigint end, case state when 'leased' then 1 else 0 end, shard, home, band,
    state = 'parked', state, destination, address, notify, orcpt
  from unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[], $6::smallint[], $7::smallint[], $8::text[], $9::text[], $10::text[],
    $11::text[], $12::text[])
    as new (id, due_at, expires_at, shard, home, band, state, destination, address, notify, orcpt)`

export const continueTries = `
  update recipient set steps = new.steps, attempts = new.attempts, last = new.last
  from unnest($1::bigint[], $2::int[], $3::int[], $4::text[]) as new (id, steps, attempts, last)
  where recipient.id = new.id and recipient.id = any ($1::bigint[])`

export const continueWarnings = `
  update message set warnings = new.warnings from unnest($1::bigint[], $2::int[]) as new (id, warnings)
  where message.id = new.id and message.id = any ($1::bigint[])`

/** Tells the owners of new mail that waits, once for each destination. */
export const tellOwnersOfNew = `
  insert into arrival (shard, kind, destination, due_at)
  select shard, 'due', destination, due_at from unnest($2::smallint[], $3::text[], $4::bigint[]) as new (shard, destination, due_at)
  where ${isForeign('new.shard')} returning shard`

/** Chunks of new messages, after those that were staged. */
export const insertChunks = `
  insert into chunk (content_id, number, crc, data)
  select content_id, number + case when (select true from staged where staged.content_id = new.content_id)
    then coalesce((select max(chunk.number) + 1 from chunk where chunk.content_id = new.content_id), 0) else 0 end, crc, data
  from unnest($1::bigint[], $2::int[], $3::bigint[], $4::bytea[]) as new (content_id, number, crc, data)`
export const unmarkStaged = 'delete from staged where content_id = any ($1::bigint[])'

export const markStaged = `
  insert into staged (content_id, node) select content_id, $1 from unnest($2::bigint[]) as new (content_id) on conflict do nothing`
/** A repetition changes nothing. */
export const stageChunks = `
  insert into chunk (content_id, number, crc, data) select * from unnest($1::bigint[], $2::int[], $3::bigint[], $4::bytea[])
  on conflict do nothing`
export const deleteStaged = `
  with s as (delete from staged where content_id = any ($1::bigint[]) returning content_id)
  delete from chunk where content_id = any (array(select content_id from s))`

export const insertMaildropFiles = `insert into maildrop_file (name, node) select name, $1 from unnest($2::text[]) as new (name)`
export const maildropFiles = 'select name from maildrop_file where node = $1 order by name collate "C"'
export const forgetMaildropFiles = 'delete from maildrop_file where node = $1 and name = any ($2::text[])'

/** Parts of contents: the first ones ($1) that are in their messages, and chunks by content ($2) and number ($3). */
export const contentParts = `
  select id as content, 0 as index, content_crc as crc, content as data from message
  where id = any ($1::bigint[]) and content_id = id and content is not null
  union all select wanted.content_id, wanted.number, part.crc, part.data
  from unnest($2::bigint[], $3::int[]) as wanted (content_id, number) cross join lateral (
    select crc, data from chunk where chunk.content_id = wanted.content_id and chunk.number = wanted.number offset 0) part`
/** Number of the last chunk of a content; -1 for one that is unknown. */
export const lastChunkOf = `
  select greatest(coalesce((select max(number) from chunk where content_id = $1), -1),
    case when exists (select 1 from message where id = $1 and content_id = $1)
      or exists (select 1 from message where content_id = $1 and shares_content) then 0 else -1 end) as last`

// --- leases

const LEASED_COLUMNS = `l.id, l.destination, l.address, l.notify, l.orcpt, l.due_at, l.kept_due_at, l.expires_at, l.steps, l.attempts,
    l.last`

/** The content of a message of one recipient that was never attempted, up to 16 kB: it is likely to be delivered at once. */
const FRESH_CONTENT = `case when l.attempts = 0 and message.recipients = 1 and message.size <= 16384
        and message.content_id = message.id and not message.shares_content then message.content end as content, message.content_crc`

/** Leases the recipients of a subquery, and returns them with their messages and earlier attempts. */
const lease = (ids: string, order: string, more = ''): string => `
  with l as (
    update recipient set state = 'leased', leased_by = $1, delivery_starts = delivery_starts + 1, suspect = false
    where id = any (array(${ids})) and (state = 'waiting') is true returning *)
  select ${LEASED_COLUMNS}, m.*, (
      select json_agg(json_build_array(at, relay, outcome, status, delays, session_id) order by number) from attempt
      where attempt.recipient = l.id and l.attempts > 0) as tried
  from l cross join lateral (select ${MESSAGE_COLUMNS}${more} from message where message.id = ${messageIdOf('l.id')} offset 0) m
  order by l.${order}, l.id`

/** Waiting recipients of a destination that is asked for, in an own shard. The entries of leased rows stay in the index while somebody
 * holds an old snapshot; those before the due time `since` are not read. */
const DUE_OF_ASKED = `recipient where shard = asked.shard and destination = asked.destination collate "C" and band = asked.band
      and ${DUE_INDEX} and due_at >= asked.since and exists (select 1 from shard where shard.id = asked.shard and (shard.owner = $1) is true)`

/** Rows that an operation of another node has locked are passed over, so that no claim waits. */
export const claimDue = lease(
  `select r.id from unnest($2::smallint[], $3::text[], $4::smallint[], $5::bigint[], $6::bigint[], $7::int[])
      as asked (shard, destination, band, since, now, most)
    cross join lateral (select id from ${DUE_OF_ASKED} and due_at <= asked.now
      order by due_at, id limit asked.most for update skip locked) r`,
  'due_at',
  `, ${FRESH_CONTENT}`,
)

/** Of the recipients that are named, those that claimDue may lease. */
export const claimListed = lease(
  `select r.id from unnest($2::bigint[], $3::text[], $4::smallint[], $5::bigint[]) as asked (id, destination, band, now)
    cross join lateral (select id from recipient where recipient.id = asked.id and destination = asked.destination and band = asked.band
      and (${DUE_INDEX}) is true and due_at <= asked.now
      and exists (select 1 from shard where shard.id = recipient.shard and (shard.owner = $1) is true)
      limit 1 for update skip locked) r`,
  'due_at',
  `, ${FRESH_CONTENT}`,
)

/** Recipients behind a place in the order of due times, in an own shard. */
export const waitingAt = `
  select r.id, r.due_at as "dueAt", (select share from message where message.id = ${messageIdOf('r.id')}) as share
  from recipient r where r.shard = $2 and r.destination = $3 collate "C" and r.band = $4 and ${DUE_INDEX}
    and (r.due_at, r.id) > ($5, $6) and exists (select 1 from shard where shard.id = $2 and (shard.owner = $1) is true)
  order by r.due_at, r.id limit $7`

export const nextDueAt = `
  select asked.destination, asked.band, r.due_at as "dueAt"
  from unnest($2::smallint[], $3::text[], $4::smallint[], $5::bigint[]) as asked (shard, destination, band, since)
    cross join lateral (select due_at from ${DUE_OF_ASKED} order by due_at limit 1) r`

/** The first rows of every own shard in the order of an index, and of these the first $3. */
const firstOfShards = (condition: string, order: string, limit: string): string => `
  select first.id from shard s cross join lateral (
    select r.id, r.${order} from recipient r where r.shard = s.id and ${condition} order by r.${order}, r.id limit ${limit}) first
  where s.owner = $1 order by first.${order}, first.id limit ${limit}`

/** Mail that follows its destination to another shard is claimed there. */
const STAYS = `r.destination <> all (array(select destination from provider_member where moves_from <> '{}'))`
export const claimSuspect = lease(
  firstOfShards(`r.state = 'waiting' and r.suspect and r.due_at <= $2 and ${STAYS}`, 'due_at', '1'),
  'due_at',
)

export const claimExpired = lease(
  firstOfShards(`r.state = 'waiting' and r.expires_at <= $2 and r.destination <> all ($4::text[])`, 'expires_at', '$3'),
  'expires_at',
)

/** Ends leases without an attempt. The recipients wait again, or are parked when their messages are held, corrupt or deleted. */
export const giveBack = `
  with u as (
    update recipient set delivery_starts = 0, suspect = false, leased_by = null,
      state = case when parks then 'parked' else 'waiting' end
    where id = any ($2::bigint[]) and (leased_by = $1) is true returning id, shard, destination, due_at, state),
  ${tellOwners('u')}
  select shard from told`

/**
 * Gives back the leases of this node that it does not know: those of a claim whose answer was lost, and of new mail that stayed in doubt. The
 * owners of the shards are told, this node too.
 */
export const giveBackUnknown = `
  with u as (
    update recipient set delivery_starts = greatest(delivery_starts - 1, 0), leased_by = null,
      suspect = delivery_starts > 2 and not parks, state = case when parks then 'parked' else 'waiting' end
    where id = any (array((select id from recipient where leased_by = $1 order by destination offset 0) except select * from unnest($2::bigint[])))
      and (leased_by = $1) is true
    returning shard, destination, due_at, state)
  insert into arrival (shard, kind, destination, due_at)
  select shard, 'due', destination, min(due_at) from u where state = 'waiting' group by shard, destination`

export const ownLeasesAmong = `
  select id, destination, (select sender from message where message.id = ${messageIdOf('recipient.id')}) as sender
  from recipient where id = any ($2::bigint[]) and (leased_by = $1) is true`

// --- outcomes

/** Fails with a division by zero unless all recipients were leased by the node, as it knows. */
const assertAll = (count: string, parameter: string): string => `1 / (case when ${count} = cardinality(${parameter}) then 1 else 0 end)`

export const settleLive = `
  with new as (${rowsOf('id bigint $2, due_at bigint $3, steps int $4, attempts int $5, last text $6, notice_due text $7')}),
    u as (update recipient r set leased_by = null, due_at = new.due_at, kept_due_at = null, steps = new.steps, attempts = new.attempts,
        delivery_starts = 0, suspect = false, last = new.last, notice_due = coalesce(new.notice_due, r.notice_due),
        state = case when r.parks then 'parked' else 'waiting' end
      from new where r.id = new.id and r.id = any ($2::bigint[]) and (r.leased_by = $1) is true
      returning r.id, r.shard, r.destination, r.due_at, r.state),
    ${tellOwners('u')}
  select ${assertAll('(select count(*) from u)', '$2::bigint[]')} as settled, array(select shard from told) as told`

export const settleFinal = `
  with new as (${rowsOf('id bigint $2, state text $3, settled_at bigint $4, attempts int $5, last text $6, notice_due text $7')}),
    u as (update recipient r set leased_by = null, state = new.state, kept_due_at = null, settled_at = new.settled_at,
        attempts = new.attempts, delivery_starts = 0, suspect = false, last = new.last, notice_due = new.notice_due
      from new where r.id = new.id and r.id = any ($2::bigint[]) and (r.leased_by = $1) is true returning r.id)
  select ${assertAll('(select count(*) from u)', '$2::bigint[]')} as settled`

/** Numbers are counted from the last attempt of each recipient, which is read before the first row is inserted. */
export const insertAttempts = `
  insert into attempt (recipient, number, at, relay, outcome, status, delays, session_id)
  select recipient, row_number() over (partition by recipient order by ordinal) + made, at, relay, outcome, status, delays, session
  from (select new.*, made from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
        with ordinality as new (recipient, at, relay, outcome, status, delays, session, ordinal)
      join (select id, coalesce((select max(attempt.number) from attempt where attempt.recipient = id), 0) as made
        from (select distinct id from unnest($1::bigint[]) as ids (id)) one offset 0) earlier on earlier.id = new.recipient) counted`

export const setWarnAt = `
  update message m set warn_at = new.warn_at from (${rowsOf('id bigint $1, warn_at bigint $2')}) as new
  where m.id = new.id and m.id = any ($1::bigint[]) and m.warn_at is distinct from new.warn_at`

/**
 * Whether a notice is due for a message, and whether this node sends it. The owner of another home is told, also of the time of a
 * warning ($3).
 */
export const noticesDueAmong = `
  with found as (select m.id, m.home, own.id is not null as mine, exists (select 1 from recipient r
        where r.home = m.home and r.id ${recipientRange('m.id')} and r.notice_due is not null) as due
      from message m left join shard own on own.id = m.home and own.owner = $1 where m.id = any ($2::bigint[])),
    told as (insert into arrival (shard, kind, message)
      select home, 'notices', id from found where not mine and (due or id = any ($3::bigint[])) returning shard)
  select id, due and mine as due, array(select shard from told) as told from found`

/**
 * Removes messages that leave with one settlement of all their recipients. Fails with a division by zero unless each is as this node
 * knows it: first attempted by this node, without a change by an operator or a warning.
 */
export const settleWhole = `
  with r as (delete from recipient where id = any ($5::bigint[]) and (leased_by = $1) is true returning id),
    m as (delete from message where id = any ($2::bigint[]) and content_id = id and content is not null and not shares_content
        and not forced_expire and warnings = 0 returning id),
    h as (insert into history (message, left_at, node, record)
      select message, left_at, $1, record from unnest($2::bigint[], $3::bigint[], $4::text[]) as new (message, left_at, record))
  select ${assertAll('(select count(*) from r)', '$5::bigint[]')} as recipients, ${assertAll('(select count(*) from m)', '$2::bigint[]')} as messages`
export const deleteAttemptsOf = 'delete from attempt where recipient = any ($1::bigint[])'

// --- departure

/** Locks messages, so that of two nodes which settle the last two recipients the second sees the outcome of the first. */
export const lockMessages = 'select id from message where id = any ($1::bigint[]) order by id for update'

/** The messages among these without a live recipient and without a notice due. */
export const unkeptAmong = `
  select ${MESSAGE_COLUMNS} from message where message.id = any ($1::bigint[]) and not exists (select 1 from recipient
    where recipient.id ${recipientRange('message.id')} and (settled_at is null or notice_due is not null)) order by message.id`

export const recipientsOf = `
  select r.* from unnest($1::bigint[]) as m (id) cross join lateral (
    select * from recipient where recipient.id ${recipientRange('m.id')} order by recipient.id offset 0) r`
export const attemptsOf = `
  select a.* from unnest($1::bigint[]) as m (id) cross join lateral (
    select * from attempt where attempt.recipient ${recipientRange('m.id')} offset 0) a order by a.at, a.recipient, a.number`

/** Locks the messages that share contents, so that the last of them deletes the content. */
export const lockSharers = `
  select id from message where id = any (array(
    select id from message where shares_content and content_id = any ($1::bigint[]) order by content_id offset 0)) order by id for update`

/** Locks the messages out of the queue that share contents, after lockSharers. */
export const lockMovingSharers = `
  select message from moving where message = any (array(
    select message from moving where shares_content and content_id = any ($1::bigint[]) order by content_id offset 0))
  order by message for update`

export const depart = `
  with h as (insert into history (message, left_at, node, record)
      select message, left_at, $1, record from unnest($2::bigint[], $3::bigint[], $4::text[]) as new (message, left_at, record)),
    r as (delete from recipient using unnest($2::bigint[]) as gone (id) where recipient.id ${recipientRange('gone.id')}),
    a as (delete from attempt using unnest($2::bigint[]) as gone (id) where attempt.recipient ${recipientRange('gone.id')}),
    c as (delete from chunk where content_id = any ($5::bigint[]) and (select true from message other where other.shares_content
      and other.content_id = chunk.content_id and other.id <> all ($2::bigint[]) limit 1) is null and (select true from moving other
      where other.shares_content and other.content_id = chunk.content_id limit 1) is null and ${notKept("'{}'::bigint[]")})
  delete from message where id = any ($2::bigint[])`

// --- requests

export const insertRequests = `
  insert into kept_request (key, digest, at, answer) select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[])`
