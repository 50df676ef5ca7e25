/** SQL statements of the audit log and of requests. */
import { matches } from '../session/patterns.ts'

// --- writing

export const insertAudit = `
  insert into audit (node, at, last_at, who, action, arguments, changed, matched, state, reason)
  values ($1, $2, $2, $3, $4, $5, $6, $6, 'done', $7) returning id`
/** `$2` is the node that carries the operation out. */
export const beginOperation = `
  insert into audit (node, runner, at, last_at, who, action, arguments, changed, state, reason, expected, undo_until, undoes)
  values ($1, $2, $3, $3, $4, $5, $6, 0, 'running', $7, $8, $9, $10) returning id`
/** The record of an action at this node that may have been committed, among the last ones. */
export const writtenAudit = `
  select id from (select * from audit where id > (select max(id) from audit) - 1000 offset 0) latest
  where node = $1 and at = $2 and who = $3 and action = $4 and arguments = $5 and state = 'done' order by id desc limit 1`
/** An operation of this node whose begin may have been committed. */
export const begunOperation = `
  select id from (select * from audit where runner = $1 and state = 'running' offset 0) own
  where at = $2 and who = $3 and action = $4 and arguments = $5 order by id desc limit 1`
/** Locks the row, so that the operation cannot end before this transaction. No row when it has ended. */
export const lockRunning = `select id from audit where id = $1 and (state = 'running') is true for update`
export const countRound = 'update audit set changed = changed + $2, matched = $3, last_at = $4 where id = $1'
export const endOperation = `
  update audit set state = $2, last_at = $3, matched = coalesce($4, matched), unknown = coalesce($5, unknown), error = $6, in_transfer = $7, runner = null
  where id = $1 and (state = 'running') is true returning id`

/** A repetition changes nothing. */
export const insertOperated = `
  insert into operated (operation, message, was, former) select $1, * from unnest($2::bigint[], $3::text[], $4::text[]) on conflict do nothing`
/** Placement of messages before the last operation that changed each outside of the trash. */
export const placementsBefore = `
  select m.id, (select was from operated where operated.message = m.id and was <> 'trash' order by operation desc limit 1) as was
  from unnest($1::bigint[]) as m (id)`
/** Forgets a slice of the messages of the oldest operation whose messages are recorded, when it began before a time. */
export const forgetOperated = `
  with oldest as (select operation from operated order by operation limit 1)
  delete from operated where operation = (
      select id from audit where id = (select operation from oldest) and at < $1)
    and message = any (array(select message from operated where operation = (select operation from oldest) order by message limit $2))
  returning message`

export const insertRequests = `
  insert into kept_request (key, digest, at, answer) select * from unnest($1::text[], $2::text[], $3::bigint[], $4::text[])`
export const forgetRequests = `
  delete from kept_request where key = any (array(select key from kept_request where at < $1 order by at limit $2)) returning key`

// --- reading

const ENTRY = `select id, node, at, last_at as "lastAt", who, action, arguments, changed, matched, in_transfer as "inTransfer", unknown, expected, state, reason, error,
    undo_until as "undoUntil", undoes, (select max(id) from (select later.id from audit later where later.undoes = audit.id offset 0) undoing) as "undoneBy"
  from audit`

export const auditAfter = `${ENTRY} where id > $1 order by id limit $2`
/** Null parameters are no conditions. */
export const auditBefore = `
  ${ENTRY} where id < $1 and at >= $2 and ($3::text is null or state = $3) and ($4::text is null or ${matches('who', '$4')})
    and ($5::text is null or ${matches('action', '$5')}) and at < $6 order by id desc limit $7`
export const operation = `${ENTRY} where id = $1`
export const operationsOn = `
  ${ENTRY} where id = any (array(select operation from operated where message = $1)) order by id desc limit $2`
/**
 * Messages of an operation after a message, each with true when no later operation with an action of $4, of its kind, has changed it. `createdAt` is null
 * for those that have left.
 */
export const placedBy = `
  select operated.message as id, (select created_at from message where message.id = operated.message) as "createdAt", former, not exists (
    select 1 from operated later where later.message = operated.message and later.operation > operated.operation
      and (select action = any ($4::text[]) and (action = 'reschedule') = (select own.action = 'reschedule' from audit own where own.id = $1)
        from audit where audit.id = later.operation)) as "isLast"
  from operated where operation = $1 and message > $2 order by message limit $3`

export const keptRequest = 'select key, digest, at, answer from kept_request where key = $1'
