/**
 * SQL statements of the writing store. Each query that selects work has a total order. None scans a large table (checked by
 * test/store/sqlite/query-plans.test.ts).
 *
 * A plus before a parameter hides its value from SQLite's query planner. With a partial index or a LIMIT, SQLite otherwise
 * prepares the statement again at every run, which takes five times as long as the query.
 */
import { NO_CLASS } from '../../../config/values/mail-classes.ts'
import { RECIPIENTS_PER_MESSAGE, STARTS_UNTIL_SUSPECT } from '../../../mail/message.ts'
import { HOUR } from '../../../system/clock.ts'
import { CHUNKS_PER_CONTENT } from '../../chunks.ts'
import { columnsBut } from '../../stored-message.ts'
import { chunkRange, messageIdOf, recipientRange } from '../../sql/id-ranges.ts'
import { OLDER_MINUTES, TRAFFIC_KINDS } from '../../counts/traffic.ts'

// --- arithmetic of ids: the chunks of a content occupy one range of ids

/** SQL expression for the content id of a chunk. */
export const contentIdOf = (chunk: string): string => `${chunk} / ${CHUNKS_PER_CONTENT}`

/** SQL condition for the recipients of one message. */
const OF_MESSAGE = `id ${recipientRange(':message')}`

/** Recipients that claimDue may lease: the condition of the index recipient_due. */
export const DUE_INDEX = `turn is (+null) and (state = 'waiting' and suspect = 0)`

/** SQL expression for the earliest due time at a destination, of any band. */
export const earliestDueAt = (destination: string): string => `
  (select min((select due_at from recipient indexed by recipient_due
    where recipient.destination = ${destination} and band = known.band and ${DUE_INDEX} order by due_at limit 1))
  from (select ${NO_CLASS} as band union all select band from class) as known)`

// --- intake

export const insertMessage = `
  insert into message (${columnsBut().join(', ')}, placement, envelope_crc)
  values (${columnsBut()
    .map(() => '?, ')
    .join('')}?, ?)`

export const insertRecipient = `
  insert into recipient (id, state, destination, address, notify, orcpt, band, due_at, expires_at, delivery_starts, envelope_crc)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

export const insertChunk = 'insert into chunk (id, crc, data) values (?, ?, ?)'
export const markStaged = 'insert into staged (content_id) values (?) on conflict do nothing'
export const unmarkStaged = 'delete from staged where content_id = ?'
export const insertMaildropFile = 'insert into maildrop_file (name) values (?)'
export const maildropFiles = 'select name from maildrop_file order by name'
export const forgetMaildropFile = 'delete from maildrop_file where name = ?'
export const stagedContents = 'select content_id from staged order by content_id'
export const chunkByNumber = 'select crc, data from chunk where id = ?'
export const lastChunkOf = `select max(id) from chunk where id ${chunkRange(':content')}`
export const deleteChunks = `delete from chunk where id ${chunkRange(':content')}`

// --- messages and recipients

export const placementOf = 'select placement from message where id = ?'
export const messageById = 'select * from message where id = ?'
/** The columns of a message that its settlement and its history need. The others include a sum that SQLite computes at each read. */
export const messageToSettle = `
  select ${columnsBut('prepended_headers').join(', ')}, shares_content, placement, forced_expire, warnings
  from message where id = ?`
export const placeOf = 'select state, destination from recipient where id = ?'
export const recipientsOf = `select * from recipient where ${OF_MESSAGE} order by id`
/** The first two recipients of a message, for its history: enough to see whether it has only one. */
export const firstTwoRecipientsOf = `
  select id, state, destination, address, notify, orcpt, due_at, expires_at, steps, attempts, delivery_starts, settled_at, notice_due, last
  from recipient where ${OF_MESSAGE} order by id limit 2`
export const liveRecipientsOf = `select * from recipient where ${OF_MESSAGE} and settled_at is null order by id`
export const recipientsWithNoticesDue = `select * from recipient indexed by recipient_notice_due where ${OF_MESSAGE} and notice_due is not null order by id`

/** Counts the recipients that keep a message in the queue: live recipients, and recipients with a notice due. Stops at `most`. */
export const countKeepers = `
  select count(*) from (select 1 from recipient where ${OF_MESSAGE} and (settled_at is null or notice_due is not null) limit +:most)`

/** SQL condition for a recipient that keeps its message in the queue. */
const KEEPS = '(settled_at is null or notice_due is not null)'
/**
 * Finds a recipient that keeps the message in the queue and has an id above `:last`, the highest id that is being settled.
 * `keeperBefore` searches backwards from the lowest. Both searches begin next to the ids that are being settled, so a message with
 * a hundred thousand recipients is not scanned each time fifty of them are settled.
 */
export const keeperAfter = `
  select 1 from recipient where id > :last and id < (:message + 1) * ${RECIPIENTS_PER_MESSAGE} and ${KEEPS} order by id limit 1`
export const keeperBefore = `
  select 1 from recipient where id >= :message * ${RECIPIENTS_PER_MESSAGE} and id < :first and ${KEEPS} order by id desc limit 1`
export const keepersBetween = `select count(*) from recipient where id between :first and :last and ${KEEPS}`

export const anyNoticeDue = `select 1 from recipient indexed by recipient_notice_due where ${OF_MESSAGE} and notice_due is not null limit 1`
export const hasLeased = `select 1 from recipient where ${OF_MESSAGE} and state = 'leased' limit 1`

// --- leases

export const dueAt = `
  select * from recipient indexed by recipient_due
  where destination = +:destination and band = +:band and ${DUE_INDEX} and due_at <= :now
  order by due_at, id limit +:limit`

/** One recipient, if claimDue may lease it. */
export const dueRecipient = `
  select * from recipient
  where id = :id and destination = :destination and band = :band and ${DUE_INDEX} and due_at <= :now`

export const waitingAt = `
  select id, due_at as dueAt, (select share from message where message.id = ${messageIdOf('recipient.id')}) as share
  from recipient indexed by recipient_due
  where destination = +:destination and band = +:band and ${DUE_INDEX} and (due_at, id) > (+:dueAt, +:after)
  order by due_at, id limit +:limit`

export const nextDueAt = `
  select due_at from recipient indexed by recipient_due
  where destination = +:destination and band = +:band and ${DUE_INDEX} order by due_at limit 1`

/** The same time for all bands of a destination; null when no recipient waits there. */
export const earliestDue = `select ${earliestDueAt('+:destination')}`

export const dueSuspect = `
  select * from recipient indexed by recipient_suspect
  where state = 'waiting' and suspect = 1 and due_at <= :now order by due_at, id limit 1`

export const expired = `
  select * from recipient indexed by recipient_expiry
  where state = 'waiting' and expires_at <= :now and destination not in (select value from json_each(:except))
  order by expires_at, id limit +:limit`

export const lease = `update recipient set state = 'leased', delivery_starts = delivery_starts + 1 where id = ?`

/** Ends a lease without an attempt. The recipient waits again, or is parked when its message is held, corrupt or deleted. */
export const giveBack = `
  update recipient set delivery_starts = 0, suspect = 0, state =
    case (select placement from message where message.id = ${messageIdOf('recipient.id')}) when 'queued' then 'waiting' else 'parked' end
  where id = ? and state = 'leased'`

// --- outcomes

export const settleLive = `
  update recipient
  set state = ?, due_at = ?, kept_due_at = null, steps = ?, attempts = ?, delivery_starts = 0, suspect = 0, last = ?, last_crc = ?, notice_due = coalesce(?, notice_due)
  where id = ?`

export const settleFinal = `
  update recipient
  set state = ?, kept_due_at = null, settled_at = ?, attempts = ?, delivery_starts = 0, last = ?, last_crc = ?, notice_due = ?
  where id = ?`

export const insertAttempt = `
  insert into attempt (recipient, number, at, relay, outcome, status, delays, session_id)
  values (:recipient, (select coalesce(max(number), 0) + 1 from attempt where recipient = +:recipient), :at, :relay, :outcome, :status, :delays, :session)`

export const attemptsOf = `
  select * from attempt where recipient ${recipientRange(':message')} order by at, recipient, number`

/** The number follows that of the newest row, also when that row was pruned. */
export const insertHistory = `
  insert into history (seq, message, left_at, record) values (
    coalesce((select max(seq) from history), (select value from meta where name = 'history_pruned'), 0) + 1, ?, ?, ?)`
export const deleteMessage = 'delete from message where id = ?'
export const deleteRecipients = `delete from recipient where ${OF_MESSAGE}`
export const deleteAttempts = `delete from attempt where recipient ${recipientRange(':message')}`
/** Another message with the same content, in the queue or taken out of it by a move. */
export const otherWithContent = `
  select 1 from message indexed by message_sharing where content_id = :content and id <> :message and shares_content = 1
  union all select 1 from moving indexed by moving_content
    where json_extract(record, '$.message.contentId') = :content and message <> :message
  union all select 1 from kept_content indexed by kept_content_id where content_id = :content and message <> :message limit 1`

// --- kept contents

/** Keeps the content of a message that leaves. */
export const keepContent = `
  insert into kept_content (message, content_id, until, size, headers)
  select id, content_id, :until, size - length(cast(coalesce(prepended_headers, '') as blob)), prepended_headers from message where id = :message`
export const keptContentOf = 'select content_id from kept_content where message = ?'
export const oldestKept =
  'select message, content_id as content, until, size from kept_content indexed by kept_content_until order by until, message limit ?'
export const keptBytes = 'select coalesce(sum(size), 0) from kept_content'
export const forgetKept = 'delete from kept_content where message = ?'
export const changeDeparture = 'update history set record = ? where seq = ?'

// --- notices due and delay warnings

export const nextNoticeDue = `
  select id from recipient indexed by recipient_notice_due
  where notice_due is not null and id >= :from order by id limit 1`

export const noticeDueOf = 'select notice_due as noticeDue, settled_at is null as isLive from recipient where id = ?'

export const clearNoticeDue = 'update recipient set notice_due = null where id = ? and notice_due = ?'

export const markDelayNoticeDue = `
  update recipient set notice_due = 'delay' where id = ? and settled_at is null and notice_due is null`

export const dueWarnings = `
  select * from message indexed by message_warning
  where warn_at is not null and placement = 'queued' and warn_at <= :now order by warn_at, id limit +:limit`

export const setWarnAt = 'update message set warn_at = ? where id = ? and warn_at is not ?'
export const setWarnings = 'update message set warnings = ?, warn_at = ? where id = ?'

// --- times of messages

export const endSchedules = `
  update message set scheduled = null where id in (
    select id from message indexed by message_scheduled where scheduled = 1 and not_before <= :now order by not_before, id limit +:limit)
  returning id`
export const nextScheduled = 'select min(not_before) from message indexed by message_scheduled where scheduled = 1'
export const scheduledMail = `
  select sender, sasl_username as saslUsername, client, count(*) as messages from message indexed by message_scheduled
  where scheduled = 1 and not_before > ? and placement in ('queued', 'hold') group by sender, sasl_username, client`
export const reschedule = `
  update message set not_before = :not_before, scheduled = :scheduled, hold_request = :hold_request, expires = :expires, envelope_crc = :crc
  where id = :id`
export const reclass = 'update message set class = :class, envelope_crc = :crc where id = :id'
export const setBand = 'update recipient set band = :band, turn = null, envelope_crc = :crc where id = :id'
export const timesOf = `
  select destination, min(coalesce(kept_due_at, due_at)) as dueAt, max(expires_at) as expiresAt from recipient
  where ${OF_MESSAGE} and settled_at is null group by destination`
export const rescheduleAt = `
  update recipient set due_at = min(:dueAt, :expiresAt), kept_due_at = null, expires_at = :expiresAt
  where ${OF_MESSAGE} and destination = :destination and settled_at is null`

// --- queries of the scheduler

/**
 * Destinations with waiting mail, each with its earliest due time. Loose index scan: two seeks per destination, independent of the
 * backlog.
 */
export const destinationsDue = `
  with recursive walk (destination) as (
    select (select destination from recipient indexed by recipient_due where ${DUE_INDEX} order by destination limit 1)
    union all
    select (select destination from recipient indexed by recipient_due
            where ${DUE_INDEX} and destination > walk.destination order by destination limit 1)
    from walk where walk.destination is not null)
  select destination, ${earliestDueAt('walk.destination')} as dueAt
  from walk where destination is not null`

/** The last id of a slice of the recipients, and the number of those without their entry in an index. */
export const sliceWithoutEntries = `
  select max(id) as last, coalesce(sum(
    (state = 'waiting' and suspect = 0 and turn is null and not exists (
      select 1 from recipient as entry indexed by recipient_due
      where destination = slice.destination and band = slice.band and due_at = slice.due_at and id = slice.id and ${DUE_INDEX}))
    or (state = 'waiting' and suspect = 0 and turn is not null and not exists (
      select 1 from recipient as entry indexed by recipient_turn
      where destination = slice.destination and band = slice.band and turn = slice.turn and id = slice.id
        and state = 'waiting' and suspect = 0 and turn is not null))
    or (state = 'waiting' and not exists (
      select 1 from recipient as entry indexed by recipient_expiry
      where expires_at = slice.expires_at and id = slice.id and state = 'waiting'))
    or (notice_due is not null and not exists (
      select 1 from recipient as entry indexed by recipient_notice_due where id = slice.id and notice_due is not null))), 0) as missing
  from (select id, state, suspect, destination, band, due_at, turn, expires_at, notice_due
    from recipient not indexed where id > :after order by id limit :size) as slice`

export const nextExpiry = `select min(expires_at) from recipient indexed by recipient_expiry where state = 'waiting'`
export const nextWarning = `
  select min(warn_at) from message indexed by message_warning where warn_at is not null and placement = 'queued'`

export const forgetDestination = 'delete from destination where name = ?'
export const saveDestination = `
  insert or replace into destination (name, dead_until, probe_interval, suspended_by, suspended_until, suspend_reason, site_status)
  values (?, ?, ?, ?, ?, ?, ?)`

// --- operators

/**
 * Also flushes recipients that are already due: their due time is kept too, so that a failed attempt continues the previous
 * schedule.
 */
export const flush = `
  update recipient set kept_due_at = due_at, due_at = min(due_at, :now)
  where ${OF_MESSAGE} and state = 'waiting' and kept_due_at is null
    and (select scheduled from message where message.id = :message) is null`

/** Limits the due time to the new expiry, so that the last attempt takes place before a shorter lifetime ends. */
export const move = `
  update recipient set destination = :destination, expires_at = :expiresAt, due_at = min(due_at, :expiresAt), envelope_crc = :crc
  where id = :recipient`
export const movable = `select * from recipient where id = ? and state in ('waiting', 'parked')`
export const park = `update recipient set state = 'parked' where ${OF_MESSAGE} and state = 'waiting'`
export const parkLeased = `update recipient set state = 'parked', delivery_starts = 0, suspect = 0 where ${OF_MESSAGE} and state = 'leased'`
export const parkOne = `update recipient set state = 'parked' where id = ?`
export const unpark = `update recipient set state = 'waiting', delivery_starts = 0, suspect = 0 where ${OF_MESSAGE} and state = 'parked'`
export const removeParked = `
  update recipient set state = 'removed', kept_due_at = null, delivery_starts = 0, notice_due = null, settled_at = :at, last = coalesce(:last, last), last_crc = coalesce(:lastCrc, last_crc)
  where ${OF_MESSAGE} and state in ('waiting', 'parked')`
/** Moves many messages to the trash in one statement, which takes half the time of one statement per message. */
export const discard = `
  update message set placement = 'trash', deleted_at = :deletedAt, why = null where id in (select value from json_each(:messages))`
/** Messages outside of the trash. */
export const discardable = `select id, placement from message where id in (select value from json_each(:messages)) and placement <> 'trash'`
/** Parks the recipients of deleted messages and drops their delay warnings. */
export const discardRecipients = `
  update recipient set state = case state when 'waiting' then 'parked' else state end, notice_due = nullif(notice_due, 'delay')
  where id in (
      select recipient.id from json_each(:messages) cross join recipient
      on recipient.id ${recipientRange('value')})
    and (state = 'waiting' or notice_due = 'delay')`

export const place = 'update message set placement = ?, deleted_at = ?, why = ? where id = ?'
export const forceExpire = 'update message set forced_expire = 1 where id = ? and forced_expire = 0'
const COPIED = columnsBut('id', 'created_at').join(', ')
export const copyMessage = `
  insert into message (id, created_at, ${COPIED}, shares_content, warnings, warn_at, envelope_crc)
  select :newId, :now, ${COPIED}, 1, warnings, warn_at, :crc from message where id = :message`
export const shareContent = 'update message set shares_content = 1 where id = ?'

/** Destinations of a message's waiting recipients. */
export const destinationsOf = `select distinct destination from recipient where ${OF_MESSAGE} and state = 'waiting' order by destination`

// --- housekeeping

export const oldestHistory = 'select seq, left_at from history order by seq limit :limit'
export const newestHistory = 'select max(seq) from history'
export const deleteHistoryThrough = 'delete from history where seq <= ?'
export const savePrunedHistory = `
  insert into meta (name, value) values ('history_pruned', ?) on conflict (name) do update set value = excluded.value`
export const oldestTrash = `
  select * from message indexed by message_trash
  where deleted_at is not null and deleted_at < :before
    and not exists (select 1 from recipient
      where recipient.id ${recipientRange('message.id')} and state = 'leased')
  order by deleted_at, id limit +:limit`

export const beatHeart = `
  insert into meta (name, value) values ('heartbeat', 1) on conflict (name) do update set value = value + 1`

/** Forgets messages that came from other queues before a time. */
export const forgetOrigins = `
  delete from origin where id in (
    select id from origin indexed by origin_admitted where admitted_at < :before order by admitted_at limit :limit)`

/** Saves one number of the record of the clock. */
export const saveClockPart = `
  insert into meta (name, value) values (:name, :value) on conflict (name) do update set value = excluded.value`

/** The record of the clock; no row in a queue without one. */
export const clockRecord = `
  select t.value as time, o.value as offset, u.value as uptime, b.value as boot
  from meta t, meta o, meta u, meta b
  where t.name = 'clock_time' and o.name = 'clock_offset' and u.name = 'clock_uptime' and b.name = 'clock_boot'`

// --- traffic

const TRAFFIC = 'accepted, delivered, deferred, bounced, expired, deleted'
const TRAFFIC_SUMS = TRAFFIC_KINDS.map((kind) => `coalesce(sum(${kind}), 0) as ${kind}`).join(', ')

export const addTraffic = `
  insert into traffic (at, ${TRAFFIC}) values (?, ?, ?, ?, ?, ?, ?)
  on conflict (at) do update set ${TRAFFIC_KINDS.map((kind) => `${kind} = ${kind} + excluded.${kind}`).join(', ')}`
export const trafficTotal = `select ${TRAFFIC_SUMS} from traffic`
export const firstTraffic = 'select min(at) from traffic'
export const trafficSince = `select at, ${TRAFFIC} from traffic where at >= :since and at > ${OLDER_MINUTES} order by at`

/** The earliest of the newest `:kept` rows; no row when there are fewer than `:kept`. */
export const oldestKeptMinute = 'select at from traffic order by at desc limit 1 offset +:kept - 1'
/** Adds up rows before `:before` by hour, and those before `:hours` in one row, and deletes them. */
export const foldTraffic = (
  [
    [`at / ${HOUR} * ${HOUR}`, `at < :before and at >= :hours and at % ${HOUR} > 0`],
    [String(OLDER_MINUTES), `at > ${OLDER_MINUTES} and at < :hours`],
  ] as const
).flatMap(([time, rows]) => [
  `insert into traffic (at, ${TRAFFIC}) select ${time}, ${TRAFFIC_SUMS} from traffic where ${rows} group by 1
  on conflict (at) do update set ${TRAFFIC_KINDS.map((kind) => `${kind} = ${kind} + excluded.${kind}`).join(', ')}`,
  `delete from traffic where ${rows}`,
])

// --- ids

/** The highest message id reserved so far. */
export const lastReservedId = `select value from meta where name = 'last_id'`
export const reserveIds = `
  insert into meta (name, value) values ('last_id', :count) on conflict (name) do update set value = value + excluded.value returning value`

// --- recovery

/** Recipients still leased by the previous owner. */
export const leftLeased = `select id, delivery_starts as deliveryStarts, is_sound as isSound from recipient indexed by recipient_leased where state = 'leased' order by id`

/** Ends a lease of a crashed owner. The count of delivery starts is kept, because the delivery may have caused the crash. */
export const unlease = `
  update recipient set suspect = (delivery_starts >= ${STARTS_UNTIL_SUSPECT}), state =
    case (select placement from message where message.id = ${messageIdOf('recipient.id')}) when 'queued' then 'waiting' else 'parked' end
  where id = ? and state = 'leased'`

export const highestId = `
  select max(
    coalesce((select max(id) from message), 0),
    coalesce((select ${contentIdOf('max(id)')} from chunk), 0),
    coalesce((select max(content_id) from staged), 0))`
