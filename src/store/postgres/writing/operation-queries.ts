/**
 * SQL statements of operators, notices and housekeeping. Operations lock recipients before messages, both by id, so that two of them
 * do not wait for each other. $1 is the node in statements about shards.
 */
import { NO_CLASS } from '../../../config/values/mail-classes.ts'
import { columnsBut } from '../../stored-message.ts'
import { messageIdOf, recipientRange } from '../../sql/id-ranges.ts'
import { isClosedIn } from '../../sql/message-selection.ts'
import { DUE_INDEX, earliestDueAt, isForeign, rowsOf } from './queries.ts'
import { MARK_NEW } from './message-columns.ts'
import { MESSAGE_COLUMNS } from './rows.ts'

/** Time that an operation waits for rows that another node has locked. Then it begins again, before deadlocks are looked for. */
export const limitLockWait = `set local lock_timeout = '100ms'`

export const lockRecipientsOf = `
  select * from recipient where id = any (array(
    select theirs.id from unnest($1::bigint[]) as m (id)
      cross join lateral (select r.id from recipient r where r.id ${recipientRange('m.id')} offset 0) theirs))
  order by id for update`
export const lockRecipients = 'select * from recipient where id = any ($1::bigint[]) order by id for update'
export const lockMessageRows = `
  select ${MESSAGE_COLUMNS} from message where message.id = any ($1::bigint[]) order by message.id for update`

// --- operations on locked rows

export const flush = `
  update recipient set kept_due_at = due_at, due_at = least(due_at, $2) where id = any ($1::bigint[])`
export const park = `
  update recipient set parks = true, state = case state when 'waiting' then 'parked' else state end where id = any ($1::bigint[])`
export const unpark = `
  update recipient set parks = false, state = case state when 'parked' then 'waiting' else state end,
    delivery_starts = case state when 'parked' then 0 else delivery_starts end, suspect = false where id = any ($1::bigint[])`
/** Parks the recipients of deleted messages and drops their delay warnings. */
export const discard = `
  update recipient set parks = parks or settled_at is null, state = case state when 'waiting' then 'parked' else state end,
    notice_due = nullif(notice_due, 'delay') where id = any ($1::bigint[])`
export const removeRecipients = `
  update recipient set state = 'removed', kept_due_at = null, delivery_starts = 0, suspect = false, notice_due = null, settled_at = $2,
    last = coalesce($3, last) where id = any ($1::bigint[])`
export const place = `
  update message set placement = $2, deleted_at = $3, why = $4 where id = any ($1::bigint[])`
export const forceExpire = 'update message set forced_expire = true where id = any ($1::bigint[])'

/** Ends the leases of this node for a message that it cannot read. */
export const parkUnreadable = `
  update recipient set parks = true, suspect = suspect and leased_by is null,
    delivery_starts = case when leased_by = $1 then 0 else delivery_starts end,
    state = case when state = 'waiting' or leased_by = $1 then 'parked' else state end,
    leased_by = case when leased_by = $1 then null else leased_by end
  where id ${recipientRange('$2::bigint')} and settled_at is null returning id`

// --- times of messages

export const endSchedules = `
  update message set scheduled = null where id = any (array(
    select id from message where scheduled and not_before <= $1 order by not_before, id limit $2 for update skip locked)) returning id`
export const nextScheduled = 'select min(not_before) as next from message where scheduled'
export const scheduledMail = `
  select sender, sasl_username as "saslUsername", client, count(*)::int as messages from message
  where scheduled and not_before > $1 and placement in ('queued', 'hold') group by sender, sasl_username, client`
export const reschedule = 'update message set not_before = $2, scheduled = $3, hold_request = $4, expires = $5 where id = $1'
export const rescheduleAt = `
  update recipient set due_at = least($3::bigint, $4::bigint), kept_due_at = null, expires_at = $4
  where id ${recipientRange('$1::bigint')} and destination = $2 and settled_at is null`

export const reclass = 'update message set class = $2 where id = any ($1::bigint[])'
export const reclassRecipients = `
  update recipient set turn = null, band = coalesce((select class.band from class where class.name = $2), ${NO_CLASS})
  where id = any (array(
    select theirs.id from unnest($1::bigint[]) as m (id)
      cross join lateral (select r.id from recipient r where r.id ${recipientRange('m.id')} and r.settled_at is null offset 0) theirs))`

// --- requeueing

const COPIED = columnsBut('id', 'created_at').join(', ')
export const copyMessage = `
  with new as (insert into message (id, created_at, recipients, home, shares_content, ${COPIED}, warnings, warn_at)
    select $2, $3, $4, $5, true, ${COPIED}, warnings, warn_at from message where id = $1 returning id, from_header)
  ${MARK_NEW}`
/** Moves a content out of the row of its message, so that two messages can have it. */
export const shareContent = `
  with m as (select content_id, content_crc, content from message where id = $1 and content is not null),
    c as (insert into chunk (content_id, number, crc, data) select content_id, 0, content_crc, content from m)
  update message set shares_content = true, content = null, content_crc = null where id = $1`
export const insertRequeued = `
  insert into recipient (id, due_at, expires_at, shard, home, band, state, destination, address, notify, orcpt)
  select id, $2, $3, shard, $4, band, 'waiting', destination, address, notify, orcpt
  from unnest($1::bigint[], $5::smallint[], $6::smallint[], $7::text[], $8::text[], $9::text[], $10::text[])
    as new (id, shard, band, destination, address, notify, orcpt)`

/** The earliest due time at each of these destinations, of own shards; owners of other shards are told. */
export const wake = `
  with asked as (select * from unnest($2::smallint[], $3::text[]) as asked (shard, destination)),
    due as (select shard, destination, ${earliestDueAt('asked.shard', 'asked.destination')} as due_at
      from asked),
    told as (insert into arrival (shard, kind, destination, due_at, revive)
      select shard, 'due', destination, due_at, $4::boolean from due where due_at is not null and ${isForeign('due.shard')} returning shard)
  select destination, due_at as "dueAt", ${isForeign('due.shard')} as "isForeign", array(select shard from told) as told from due
  where due_at is not null order by destination collate "C"`

export const move = `
  update recipient r set destination = new.destination, shard = new.shard, expires_at = new.expires_at,
    due_at = least(r.due_at, new.expires_at)
  from (${rowsOf('id bigint $1, destination text $2, shard smallint $3, expires_at bigint $4')}) as new
  where r.id = new.id and r.id = any ($1::bigint[])`

// --- notices and warnings

export const clearNoticesDue = 'update recipient set notice_due = null where id = any ($1::bigint[])'
export const setWarnings = 'update message set warnings = $2, warn_at = $3 where id = $1'
export const postponeWarning = `
  with m as (update message set warn_at = $3 where id = $2 and warn_at is distinct from $3 returning id, home),
    told as (insert into arrival (shard, kind, message)
      select home, 'notices', id from m where $3 is not null and ${isForeign('m.home')} returning shard)
  select shard from told`
export const markDelayNoticeDue = `
  update recipient set notice_due = 'delay'
  where id = any ($1::bigint[]) and settled_at is null and notice_due is null`

/** The first recipient with a notice due from an id on, in the own shards. */
const firstDueFrom = (from: string): string => `
  select first.id from shard s cross join lateral (
    select r.id from recipient r where r.home = s.id and r.notice_due is not null and r.id >= ${from} order by r.id limit 1) first
  where s.owner = $1 order by first.id limit 1`
/** Messages with notices due, one step of the recursion each. */
export const messagesWithNoticesDue = `
  with recursive walk (id) as (
    (${firstDueFrom('$2::bigint')})
    union all
    select (${firstDueFrom(`(${messageIdOf('walk.id')} + 1) * 131072`)}) from walk where walk.id is not null)
  select ${messageIdOf('id')} as id from walk where id is not null limit $3`

export const messagesById = `select ${MESSAGE_COLUMNS} from message where message.id = any ($1::bigint[]) order by message.id`

/** Recipients with a notice due; with $2 or a delay notice due, also the live ones. */
export const recipientsToReport = `
  select r.* from unnest($1::bigint[]) as m (id) cross join lateral (
    select * from recipient where recipient.id ${recipientRange('m.id')} and (settled_at is null or notice_due is not null)
    order by recipient.id offset 0) r`

/** Live recipients at destinations of other owners. */
export const recipientsElsewhere = `
  select ${messageIdOf('r.id')} as message, r.destination, r.leased_by is not null and r.leased_by <> $1 as leased,
    exists (select 1 from destination d where d.name = r.destination and ${isClosedIn('d')}) as closed
  from unnest($2::bigint[]) as m (id) cross join lateral (
    select * from recipient where recipient.id ${recipientRange('m.id')} and settled_at is null offset 0) r
  where ${isForeign('r.shard')}`

const HAS_LIVE = `exists (select 1 from recipient r where r.id ${recipientRange('m.id')} and r.settled_at is null)`
export const dueWarnings = `
  select first.id from shard s cross join lateral (
    select m.id, m.warn_at from message m where m.home = s.id and m.warn_at is not null and m.placement = 'queued' and m.warn_at <= $2
      and ${HAS_LIVE} order by m.warn_at, m.id limit $3) first
  where s.owner = $1 order by first.warn_at, first.id limit $3`

// --- queries of the scheduler

/** Destinations of own shards with waiting mail. Loose index scan: two seeks per destination, independent of the backlog. */
export const destinationsDue = `
  with recursive walk (shard, destination) as (
    select s.id, (select r.destination from recipient r where r.shard = s.id and ${DUE_INDEX}
      order by r.destination limit 1) from shard s where s.owner = $1
    union all
    select walk.shard, (select r.destination from recipient r where r.shard = walk.shard and r.destination > walk.destination
      and ${DUE_INDEX} order by r.destination limit 1) from walk where walk.destination is not null)
  select destination, ${earliestDueAt('walk.shard', 'walk.destination')} as "dueAt"
  from walk where destination is not null order by destination`

export const nextDeadlines = `
  select (select min(first.expires_at) from shard s cross join lateral (
      select r.expires_at from recipient r where r.shard = s.id and r.state = 'waiting' order by r.expires_at limit 1) first
    where s.owner = $1) as "expiresAt",
    (select min(first.warn_at) from shard s cross join lateral (
      select m.warn_at from message m where m.home = s.id and m.warn_at is not null and m.placement = 'queued' and ${HAS_LIVE}
      order by m.warn_at limit 1) first
    where s.owner = $1) as "warnAt"`

export const ownDestinations = `
  select d.* from shard s cross join lateral (select * from destination where destination.shard = s.id offset 0) d
  where s.owner = $1 order by d.name`
const TOLD_RECORD = `
  told as (insert into arrival (shard, kind, record) select $2::smallint, 'destinations', $3 where ${isForeign('$2::smallint')} returning shard)
  select shard from told`
export const saveDestination = `
  with saved as (insert into destination (shard, name, dead_until, probe_interval, suspended_by, suspended_until, suspend_reason, site_status)
      values ($2::smallint, $4, $5, $6, $7, $8, $9, $10)
      on conflict (name) do update set dead_until = excluded.dead_until, probe_interval = excluded.probe_interval,
        suspended_by = excluded.suspended_by, suspended_until = excluded.suspended_until, suspend_reason = excluded.suspend_reason,
        site_status = excluded.site_status), ${TOLD_RECORD}`
export const forgetDestination = `with gone as (delete from destination where name = $4), ${TOLD_RECORD}`

// --- housekeeping

export const oldestTrash = `
  select message.id, deleted_at as "deletedAt" from message where deleted_at is not null and deleted_at < $1
    and not exists (select 1 from recipient where recipient.id ${recipientRange('message.id')} and state = 'leased')
  order by deleted_at, message.id limit $2`

/** Deletes rows from the oldest on, up to the first that is young enough and not in excess. */
export const pruneHistory = `
  with oldest as (select seq, left_at from history order by seq limit $3),
    kept as (select min(seq) as seq from oldest where left_at >= $1 and seq > (select max(seq) from history) - $2),
    gone as (delete from history where seq = any (array(
      select seq from oldest where seq < coalesce((select seq from kept), 9223372036854775807))) returning seq, message),
    entries as (delete from search using gone where search.id ${recipientRange('gone.message')})
  select seq from gone`

/** Forgets messages that came from other queues before a time. */
export const forgetOrigins = `
  delete from origin where id = any (array(select id from origin where admitted_at < $1 order by admitted_at limit $2))`

/** Writes to the log of the database without a row. Its commit shows that mail can be committed, and that no right on its tables is missing. */
export const ping = `
  with m as (insert into message (id) select 0 where false), r as (insert into recipient (id) select 0 where false),
    c as (insert into chunk (content_id) select 0 where false), s as (insert into staged (content_id) select 0 where false),
    u as (update recipient set state = state where false), d as (delete from message where false),
    e as (delete from recipient where false), f as (delete from chunk where false), g as (delete from staged where false)
  select pg_logical_emit_message(true, 'deferd', '')`
