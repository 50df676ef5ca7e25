/** SQL statements of the audit log and of requests. None scans a table that grows with the queue. */

// --- writing

export const insertAudit = `
  insert into audit (at, last_at, who, action, arguments, reason, changed, matched, state)
  values (:at, :at, :who, :action, :arguments, :reason, :changed, :changed, 'done')`
export const beginOperation = `
  insert into audit (at, last_at, who, action, arguments, changed, state, reason, expected, undo_until, undoes)
  values (:at, :at, :who, :action, :arguments, 0, 'running', :reason, :expected, :undoUntil, :undoes)`
export const isRunning = `select 1 from audit where id = ? and state = 'running'`
export const countRound = 'update audit set changed = changed + :changed, matched = :matched, last_at = :at where id = :operation'
export const countAudited = 'update audit set changed = changed + ? where id = ?'
export const endOperation = `
  update audit set state = :state, last_at = :at, matched = coalesce(:matched, matched), in_transfer = :inTransfer, unknown = coalesce(:unknown, unknown), error = :error
  where id = :id and state = 'running'`
/** Ends the operations of an owner of the queue that did not end them. */
export const endAbandoned = `update audit indexed by audit_running set state = 'failed', error = ? where state = 'running'`

/** Records the changed messages of a round, with their placement and times before; `:changed` is a list of triples in JSON. */
export const insertOperated = `
  insert or ignore into operated (operation, message, was, former)
  select :operation, value ->> 0, value ->> 1, value ->> 2 from json_each(:changed)`
/** Placement of a message before the last operation that changed it outside of the trash. */
export const placementBefore = `
  select was from operated indexed by operated_message where message = ? and was <> 'trash' order by operation desc limit 1`
/** Operations before a time whose changed messages are still recorded, the oldest first. */
export const oldestOperated = 'select operation, at from operated join audit on audit.id = operation order by operation limit 1'
export const forgetOperated = `
  delete from operated where operation = :operation and message in (
    select message from operated where operation = :operation order by message limit :limit)`

/** Adds a record of another queue. */
export const takeAudit = `
  insert into audit (at, last_at, who, action, arguments, changed, matched, unknown, state, reason, error)
  values (:at, :lastAt, :who, :action, :arguments, :changed, :matched, :unknown, :state, :reason, :error)`

// --- reading

const ENTRY = `select id, at, last_at as lastAt, who, action, arguments, changed, matched, in_transfer as inTransfer, unknown, expected, state, reason, error,
    undo_until as undoUntil, undoes, (select max(id) from audit later indexed by audit_undoes where later.undoes = audit.id) as undoneBy, null as node
  from audit`

export const auditAfter = `${ENTRY} where id > :after order by id limit :limit`
export const auditBefore = `
  ${ENTRY} where id < :before and at >= :since and at < :until and (:state is null or state = :state)
    and (:who is null or who like :who escape '\\') and (:action is null or action like :action escape '\\')
  order by id desc limit :limit`
export const operation = `${ENTRY} where id = ?`
export const operationsOn = `
  ${ENTRY} where id in (select operation from operated indexed by operated_message where message = :message) order by id desc limit :limit`
/** Messages of an operation after a message, each with 1 when no later operation of its kind has placed it; `createdAt` is null for those that have left. */
export const placedBy = `
  select operated.message as id, message.created_at as createdAt, operated.former, not exists (
    select 1 from operated later indexed by operated_message join audit on audit.id = later.operation
    where later.message = operated.message and later.operation > operated.operation
      and audit.action in (select value from json_each(:placing))
      and (audit.action = 'reschedule') = (select action = 'reschedule' from audit own where own.id = :operation)) as isLast
  from operated left join message on message.id = operated.message
  where operated.operation = :operation and operated.message > :after order by operated.message limit :limit`

// --- requests

export const insertRequest = 'insert or ignore into kept_request (key, digest, at, answer) values (?, ?, ?, ?)'
export const keptRequest = 'select key, digest, at, answer from kept_request where key = ?'
export const forgetRequests = `
  delete from kept_request where key in (
    select key from kept_request indexed by kept_request_at where at < :before order by at limit :limit)`
