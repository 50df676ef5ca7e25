/** SQL statements of the salvage: over a queue that no other process uses, so scans of whole tables are acceptable. */
import { RECIPIENTS_PER_MESSAGE } from '../../../mail/message.ts'
import { CHUNKS_PER_CONTENT } from '../../chunks.ts'

/** All tables of the schema; `wr` is 1 for those without row numbers. */
export const tables = `select name, wr from pragma_table_list where schema = 'main' and type = 'table' and name not like 'sqlite_%' order by name`

/** Columns with the default 0. */
export const ZERO: ReadonlySet<string> = new Set([
  'shares_content',
  'forced_expire',
  'warnings',
  'steps',
  'attempts',
  'delivery_starts',
  'suspect',
  'band',
])

/** The index of the damaged queue is not read: all messages get new entries. */
export const indexHistory = `insert into unindexed (message) select message from history where true on conflict do nothing`

export const now = `select cast(unixepoch('subsec') * 1000 as integer)`

const CONTENT_OF_CHUNK = `chunk.id / ${CHUNKS_PER_CONTENT}`
const CHUNKS_OF_MESSAGE = `chunk.id between message.content_id * ${CHUNKS_PER_CONTENT} and message.content_id * ${CHUNKS_PER_CONTENT} + ${CHUNKS_PER_CONTENT - 1}`
const RECIPIENTS_OF_MESSAGE = `recipient.id between message.id * ${RECIPIENTS_PER_MESSAGE} and message.id * ${RECIPIENTS_PER_MESSAGE} + ${RECIPIENTS_PER_MESSAGE - 1}`

/** Contents of messages between this queue and another one. */
const MOVING_CONTENTS = `
  select json_extract(record, '$.message.contentId') from moving
  union all select json_extract(record, '$.message.contentId') from origin where record is not null`

export const contentsWithoutMessage = `
  select distinct ${CONTENT_OF_CHUNK} from chunk
  where ${CONTENT_OF_CHUNK} not in (select content_id from message) and ${CONTENT_OF_CHUNK} not in (select content_id from staged)
    and ${CONTENT_OF_CHUNK} not in (${MOVING_CONTENTS})
    and ${CONTENT_OF_CHUNK} not in (select content_id from kept_content)
    and ${CONTENT_OF_CHUNK} not in (select id / ${RECIPIENTS_PER_MESSAGE} from recipient)
  order by 1`
export const recipientsWithoutMessage = `
  select distinct id / ${RECIPIENTS_PER_MESSAGE} from recipient
  where id / ${RECIPIENTS_PER_MESSAGE} not in (select id from message) order by 1`
export const messagesWithoutRecipients = `
  select id from message where not exists (select 1 from recipient where ${RECIPIENTS_OF_MESSAGE}) order by id`
export const incompleteContents = `
  select id from message
  where size - length(cast(coalesce(prepended_headers, '') as blob)) <> (select coalesce(sum(length(data)), 0) from chunk where ${CHUNKS_OF_MESSAGE})
  order by id`
export const messagesWithContent = 'select id from message where content_id = ? order by id'
export const toCorrupt = `update message set placement = 'corrupt', why = ?, deleted_at = null where id = ?`
export const toHold = `update message set placement = 'hold' where id = ? and placement = 'queued'`
export const corrupt = `select id, created_at as createdAt, why from message where placement = 'corrupt' order by id`
export const parkWaiting = `
  update recipient set state = 'parked'
  where id between :message * ${RECIPIENTS_PER_MESSAGE} and :message * ${RECIPIENTS_PER_MESSAGE} + ${RECIPIENTS_PER_MESSAGE - 1} and state = 'waiting'`
export const raiseLastId = `
  insert into meta (name, value) values ('last_id', ?) on conflict (name) do update set value = max(value, excluded.value)`
export const countMessages = `select count(*) from message where placement <> 'corrupt'`
