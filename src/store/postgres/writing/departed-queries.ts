/** Statements about mail that has left the queue and whose content is kept. */

/** SQL condition: no kept content has the content of the chunk, but those of the messages in `except`. */
export const notKept = (except: string): string =>
  `(select true from kept_content k where k.content_id = chunk.content_id and k.message <> all (${except}) limit 1) is null`

/** Keeps the contents of locked messages that leave. A content in the row of its message becomes a chunk. */
export const keepContents = `
  with m as (select * from message where id = any ($1::bigint[])),
    c as (insert into chunk (content_id, number, crc, data) select content_id, 0, content_crc, content from m where content is not null)
  insert into kept_content (message, content_id, until, size, headers)
  select id, content_id, $2, size - octet_length(coalesce(prepended_headers, '')), prepended_headers from m`

/** Locks kept contents of these messages, whose chunks exist. A deferd of an earlier release deletes them with another message that has them. */
export const lockKeptOf = `
  select message, content_id as content from kept_content where message = any ($1::bigint[])
    and (size = 0 or (select true from chunk where chunk.content_id = kept_content.content_id limit 1)) order by message for update`
// The sum keeps PostgreSQL from reading the whole table in the order of its key.
export const lockKeptSharers = `select message from kept_content where content_id = any ($1::bigint[]) order by message + 0 for update`
export const lockDepartures = `
  select seq, message, record from history where seq = any (array(
    select max(seq) from history where message = any ($1::bigint[]) group by message)) order by seq for update`
export const changeDepartures = `
  update history h set record = new.record from unnest($1::bigint[], $2::text[]) as new (seq, record)
  where h.seq = new.seq and h.seq = any ($1::bigint[])`
export const shareContents = 'update message set shares_content = true where id = any ($1::bigint[])'

export const keptBytes = 'select coalesce(sum(size), 0)::bigint as bytes from kept_content'
export const oldestKept = 'select message, content_id as content, "until", size from kept_content order by "until", message limit $1'
/** Deletes kept contents of these messages, with the chunks that no other message has. */
export const forgetKept = `
  with c as (delete from chunk where content_id = any ($2::bigint[])
      and (select true from message other where other.shares_content and other.content_id = chunk.content_id limit 1) is null
      and (select true from moving other where other.shares_content and other.content_id = chunk.content_id limit 1) is null
      and ${notKept('$1::bigint[]')})
  delete from kept_content where message = any ($1::bigint[])`

// --- erasures

export const keptAfter =
  'select message, content_id as content, "until", size from kept_content where message > $1 order by message limit $2'
export const departureOf = 'select record from (select * from history where message = $1 offset 0) found order by seq desc limit 1'
export const chunksOf = 'select data from chunk where content_id = $1 order by number'
