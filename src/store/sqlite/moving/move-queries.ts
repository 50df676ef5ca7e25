/** SQL statements of moves between queues. None scans a table that grows with the queue. */
import { columnsBut } from '../../stored-message.ts'
import { recipientRange } from '../../sql/id-ranges.ts'
import { chunkRange } from '../../sql/id-ranges.ts'

// --- state

export const identity = `select value from meta where name = 'identity'`
/** Gives the queue an identity unless it has one. */
export const giveIdentity = `insert or ignore into meta (name, value) values ('identity', 68719476736 + abs(random() % 9000000000000000))`
export const movedTo = 'select name from moved_to'
export const markMoved = 'insert or replace into moved_to (name) values (?)'
export const unmarkMoved = 'delete from moved_to'
export const lastMessage = 'select max(id) from message'
export const countLeaving = 'select count(*) from moving'
export const countArriving = 'select count(*) from origin indexed by origin_arriving where record is not null'
export const isInUse = `
  select exists (select 1 from message) or exists (select 1 from moving)
    or exists (select 1 from origin indexed by origin_arriving where record is not null)`

// --- source

export const sliceToMove = 'select * from message where id > :after and id <= :through order by id limit :size'
export const insertMoving = 'insert into moving (message, shares_content, target, record, crc) values (?, ?, ?, ?, ?)'
export const movingRows = 'select * from moving order by message limit :limit'
export const movingRow = 'select * from moving where message = ?'
export const deleteMoving = 'delete from moving where message = ?'
export const historyAfter = `
  select seq, message, left_at as leftAt, record from history where seq > :after order by seq limit :limit`

// --- a message enters a queue with its state

const RESTORED = [
  ...columnsBut(),
  'shares_content',
  'placement',
  'deleted_at',
  'why',
  'forced_expire',
  'warnings',
  'warn_at',
  'envelope_crc',
]
export const restoreMessage = `insert into message (${RESTORED.join(', ')}) values (${RESTORED.map((column) => `:${column}`).join(', ')})`
/** Band of a class in this queue; that of another queue may have another number. */
export const bandOf = 'select band from class where name = ?'
export const restoreRecipient = `
  insert into recipient (id, state, destination, address, notify, orcpt, band, due_at, kept_due_at, expires_at, steps, attempts,
    delivery_starts, suspect, settled_at, notice_due, last, last_crc, envelope_crc)
  values (:id, :state, :destination, :address, :notify, :orcpt, :band, :due_at, :kept_due_at, :expires_at, :steps, :attempts,
    :delivery_starts, :suspect, :settled_at, :notice_due, :last, :last_crc, :envelope_crc)`

// --- target

/**
 * 1 when an id names nothing in this queue: no message, content or history. The target keeps the ids of the source where it can, so that
 * queue ids do not change.
 */
export const isFreeId = `
  select not exists (select 1 from message where id = :id) and not exists (select 1 from history where message = :id)
    and not exists (select 1 from origin where id = :id) and not exists (select 1 from moving where message = :id)
    and not exists (select 1 from chunk where id ${chunkRange(':id')}) and not exists (select 1 from staged where content_id = :id)
    and not exists (select 1 from recipient where id ${recipientRange(':id')})`
/** Raises the last reserved id, so that no new message gets the id. */
export const useId = `
  insert into meta (name, value) values ('last_id', ?) on conflict (name) do update set value = max(value, excluded.value)`
export const originOf = `select id, queue_id as queueId from origin where source = ? and message = ? and created_at = ?`
export const insertOrigin = `
  insert into origin (id, source, message, created_at, queue_id, record, crc) values (?, ?, ?, ?, ?, ?, ?)`
export const arrivingRows = `
  select id, record, crc from origin indexed by origin_arriving where source = :source and record is not null order by id limit :limit`
export const admitOrigin = 'update origin set record = null, crc = null, admitted_at = ? where id = ?'
export const addDestination = `
  insert or ignore into destination (name, dead_until, probe_interval, suspended_by, suspended_until, suspend_reason, site_status)
  values (?, ?, ?, ?, ?, ?, ?)`
export const recordsTaken = 'select history, audit from records_taken where source = ?'
export const saveRecordsTaken = `
  insert or replace into records_taken (source, history, audit) values (:source, :history, :audit)`
