/**
 * Every SQL text of the writing store, named for what it finds or does. Each query that picks work has a total order,
 * and none reads a big table from end to end (test/queue-store/query-plans.test.ts holds them to it).
 *
 * The plus before some parameters keeps SQLite from looking at their values when it plans: where a partial index or a
 * LIMIT is involved it would otherwise plan anew with every run, which costs five times the query.
 */

/** The ids of a message's recipients: message * 131072 + position. */
const OF_MESSAGE = 'id between :message * 131072 and :message * 131072 + 131071'

/** What claimDue may lease: the condition of the index recipient_due. */
const DUE_INDEX = `state = 'waiting' and suspect = 0`

// --- coming in

export const insertMessage = `
  insert into message (id, created_at, arrived_at, sender, size, body, ret, envid, smtputf8, body_type, message_id, placement)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

export const insertRecipient = `
  insert into recipient (id, state, destination, address, notify, orcpt, due_at, expires_at, starts)
  values (?, ?, ?, ?, ?, ?, ?, ?, ?)`

export const insertChunk = 'insert into chunk (id, crc, data) values (?, ?, ?)'
export const markStaged = 'insert into staged (body) values (?) on conflict do nothing'
export const unmarkStaged = 'delete from staged where body = ?'
export const stagedBodies = 'select body from staged order by body'
export const chunkByNumber = 'select crc, data from chunk where id = ?'
export const lastChunkOf = 'select max(id) from chunk where id between :body * 65536 and :body * 65536 + 65535'
export const deleteChunks = 'delete from chunk where id between :body * 65536 and :body * 65536 + 65535'

/** A body of its own for an entry that parts from a message still in delivery. */
export const copyChunks = `
  insert into chunk (id, crc, data)
  select :to * 65536 + id - :from * 65536, crc, data from chunk where id between :from * 65536 and :from * 65536 + 65535`

// --- messages and recipients

export const placementOf = 'select placement from message where id = ?'
export const messageById = 'select * from message where id = ?'
export const stateOf = 'select state from recipient where id = ?'
export const recipientsOf = `select * from recipient where ${OF_MESSAGE} order by id`
export const liveRecipientsOf = `select * from recipient where ${OF_MESSAGE} and settled_at is null order by id`
export const indebtedRecipientsOf = `select * from recipient indexed by recipient_debt where ${OF_MESSAGE} and debt is not null order by id`

/** What keeps a message in the queue: recipients that are alive, and words owed. Counted no further than it matters. */
export const countKeepers = `
  select count(*) from (select 1 from recipient where ${OF_MESSAGE} and (settled_at is null or debt is not null) limit +:most)`

/**
 * The same beyond the ids that are just being settled: forwards from the last of them, then backwards from the first, so
 * that a message with a hundred thousand recipients is not counted through for every fifty of them.
 */
const KEEPS = '(settled_at is null or debt is not null)'
export const keeperAfter = `
  select 1 from recipient where id > :last and id <= :message * 131072 + 131071 and ${KEEPS} order by id limit 1`
export const keeperBefore = `
  select 1 from recipient where id >= :message * 131072 and id < :first and ${KEEPS} order by id desc limit 1`
export const keepersBetween = `select count(*) from recipient where id between :first and :last and ${KEEPS}`

export const owesAnything = `select 1 from recipient indexed by recipient_debt where ${OF_MESSAGE} and debt is not null limit 1`
export const hasLeased = `select 1 from recipient where ${OF_MESSAGE} and state = 'leased' limit 1`

// --- leases

export const dueAt = `
  select * from recipient indexed by recipient_due
  where destination = +:destination and ${DUE_INDEX} and due_at <= :now
  order by due_at, id limit +:limit`

export const nextDueAt = `
  select due_at from recipient indexed by recipient_due
  where destination = +:destination and ${DUE_INDEX} order by due_at limit 1`

export const dueSuspect = `
  select * from recipient indexed by recipient_suspect
  where state = 'waiting' and suspect = 1 and due_at <= :now order by due_at, id limit 1`

export const expired = `
  select * from recipient indexed by recipient_expiry
  where state = 'waiting' and expires_at <= :now and destination not in (select value from json_each(:except))
  order by expires_at, id limit +:limit`

export const lease = `update recipient set state = 'leased', starts = starts + 1 where id = ?`

/** Where a recipient goes whose lease ends untried: waiting, or parked when its message is held, corrupt or deleted. */
export const giveBack = `
  update recipient set starts = 0, suspect = 0, state =
    case (select placement from message where message.id = recipient.id / 131072) when 'queued' then 'waiting' else 'parked' end
  where id = ? and state = 'leased'`

// --- outcomes

export const settleLive = `
  update recipient
  set state = ?, due_at = ?, kept_due_at = null, steps = ?, attempts = ?, starts = 0, suspect = 0, last = ?, debt = coalesce(?, debt)
  where id = ?`

export const settleFinal = `
  update recipient
  set state = ?, kept_due_at = null, settled_at = ?, attempts = ?, starts = 0, last = ?, debt = ?
  where id = ?`

export const insertAttempt = `
  insert into attempt (recipient, number, at, relay, outcome, status, delays)
  values (:recipient, (select coalesce(max(number), 0) + 1 from attempt where recipient = +:recipient), :at, :relay, :outcome, :status, :delays)`

export const attemptsOf = `
  select * from attempt where recipient between :message * 131072 and :message * 131072 + 131071 order by at, recipient, number`

export const insertDeparted = 'insert into departed (message, left_at, record) values (?, ?, ?)'
export const deleteMessage = 'delete from message where id = ?'
export const deleteRecipients = `delete from recipient where ${OF_MESSAGE}`
export const deleteAttempts = 'delete from attempt where recipient between :message * 131072 and :message * 131072 + 131071'
export const otherWithBody = 'select 1 from message indexed by message_sharing where body = ? and id <> ? and shares_body = 1 limit 1'

// --- debts and warnings

export const nextIndebted = `
  select id from recipient indexed by recipient_debt
  where debt is not null and id >= :from order by id limit 1`

export const debtOf = 'select debt, settled_at is null as isLive from recipient where id = ?'

export const payDebt = 'update recipient set debt = null where id = ? and debt = ?'

export const oweDelay = `
  update recipient set debt = 'delay' where id = ? and settled_at is null and debt is null`

export const dueWarnings = `
  select * from message indexed by message_warning
  where warn_at is not null and placement = 'queued' and warn_at <= :now order by warn_at, id limit +:limit`

export const setWarnAt = 'update message set warn_at = ? where id = ? and warn_at is not ?'
export const setWarnings = 'update message set warnings = ?, warn_at = ? where id = ?'

// --- the scheduler's view

/** A loose scan: one seek per destination, whatever the backlog. */
export const destinationsDue = `
  with recursive walk (destination) as (
    select (select destination from recipient indexed by recipient_due where ${DUE_INDEX} order by destination limit 1)
    union all
    select (select destination from recipient indexed by recipient_due
            where ${DUE_INDEX} and destination > walk.destination order by destination limit 1)
    from walk where walk.destination is not null)
  select destination, (select due_at from recipient indexed by recipient_due
    where recipient.destination = walk.destination and ${DUE_INDEX} order by due_at limit 1) as dueAt
  from walk where destination is not null`

export const nextExpiry = `select min(expires_at) from recipient indexed by recipient_expiry where state = 'waiting'`
export const nextWarning = `
  select min(warn_at) from message indexed by message_warning where warn_at is not null and placement = 'queued'`

export const destinations = 'select * from destination order by name'
export const forgetDestination = 'delete from destination where name = ?'
export const saveDestination = `
  insert or replace into destination (name, dead_until, probe_interval, suspended_by, reason) values (?, ?, ?, ?, ?)`

// --- operators

/** What is due already counts as flushed too: a failure leaves its due time alone. */
export const flush = `
  update recipient set kept_due_at = due_at, due_at = min(due_at, :now)
  where ${OF_MESSAGE} and state = 'waiting' and kept_due_at is null`

/** A lifetime that has become shorter brings the last attempt forward. */
export const move = `
  update recipient set destination = :destination, expires_at = :expiresAt, due_at = min(due_at, :expiresAt)
  where id = :recipient and state in ('waiting', 'parked')`
export const park = `update recipient set state = 'parked' where ${OF_MESSAGE} and state = 'waiting'`
export const parkLeased = `update recipient set state = 'parked', starts = 0, suspect = 0 where ${OF_MESSAGE} and state = 'leased'`
export const parkOne = `update recipient set state = 'parked' where id = ?`
export const unpark = `update recipient set state = 'waiting', starts = 0, suspect = 0 where ${OF_MESSAGE} and state = 'parked'`
export const removeParked = `
  update recipient set state = 'removed', kept_due_at = null, starts = 0, debt = null, settled_at = :at, last = coalesce(:last, last)
  where ${OF_MESSAGE} and state in ('waiting', 'parked')`
/** Many at once, which takes half the time of one by one. */
export const discard = `
  update message set placement = 'trash', deleted_at = :deletedAt, why = null
  where id in (select value from json_each(:messages)) and placement <> 'trash' returning id`
/** Nobody is warned of the delay of deleted mail. */
export const discardRecipients = `
  update recipient set state = case state when 'waiting' then 'parked' else state end, debt = nullif(debt, 'delay')
  where id in (
      select recipient.id from json_each(:messages) cross join recipient
      on recipient.id between value * 131072 and value * 131072 + 131071)
    and (state = 'waiting' or debt = 'delay')`

export const place = 'update message set placement = ?, deleted_at = ?, why = ? where id = ?'
export const forceExpire = 'update message set forced_expire = 1 where id = ? and forced_expire = 0'
export const copyMessage = `
  insert into message (id, created_at, arrived_at, sender, size, body, shares_body, ret, envid, smtputf8, body_type, message_id, warnings, warn_at)
  select :newId, :now, arrived_at, sender, size, body, 1, ret, envid, smtputf8, body_type, message_id, warnings, warn_at
  from message where id = :message`
export const shareBody = 'update message set shares_body = 1 where id = ?'

/** Destinations of a message's waiting recipients; of those in the trash or on hold when they are about to wait again. */
export const destinationsOf = `select distinct destination from recipient where ${OF_MESSAGE} and state = 'waiting' order by destination`

export const countAudited = 'update audit set changed = changed + ? where id = ?'
export const insertAudit = 'insert into audit (at, who, action, arguments, changed) values (?, ?, ?, ?, ?)'

// --- housekeeping

export const oldestDeparted = 'select seq, left_at from departed order by seq limit :limit'
export const newestDeparted = 'select max(seq) from departed'
export const deleteDepartedThrough = 'delete from departed where seq <= ?'
export const oldestTrash = `
  select * from message indexed by message_trash
  where deleted_at is not null and deleted_at < :before
    and not exists (select 1 from recipient
      where recipient.id between message.id * 131072 and message.id * 131072 + 131071 and state = 'leased')
  order by deleted_at, id limit +:limit`

export const beatHeart = `
  insert into meta (name, value) values ('heartbeat', 1) on conflict (name) do update set value = value + 1`

// --- taking the queue up again

/** Leases that the last owner left behind. */
export const leftLeased = `select id, starts from recipient indexed by recipient_leased where state = 'leased' order by id`

/** A lease whose owner died: the delivery may have been the reason, so its start still counts. */
export const unlease = `
  update recipient set suspect = (starts >= 2), state =
    case (select placement from message where message.id = recipient.id / 131072) when 'queued' then 'waiting' else 'parked' end
  where id = ? and state = 'leased'`

export const highestId = `
  select max(
    coalesce((select seq from sqlite_sequence where name = 'message'), 0),
    coalesce((select max(id) / 65536 from chunk), 0),
    coalesce((select max(body) from staged), 0))`
