/** Statements of the index by which messages are found. The entries of a message have the ids of its recipients. */
import { recipientRange } from '../../sql/id-ranges.ts'

export const takeUnindexed = `
  delete from unindexed where message = any (array(
    select message from unindexed order by message limit $1 for update skip locked)) returning message`
export const searchedMessages = `
  select m.id, m.sender, m.message_id as "messageId", m.subject, (select json_agg(r.address order by r.id) from recipient r
    where r.id ${recipientRange('m.id')}) as addresses
  from message m where m.id = any ($1::bigint[]) and m.from_header is not null`
export const recordsOf = `
  select message, record from (select * from history where message = any ($1::bigint[]) offset 0) found order by seq`
/** Deletes what the index has of messages whose records change; the next `indexMail` writes entries of the changed records. */
export const forgetEntries = `
  with gone as (delete from search using unnest($1::bigint[]) as erased (message) where search.id ${recipientRange('erased.message')})
  insert into unindexed (message) select message from unnest($1::bigint[]) as erased (message) on conflict do nothing`
export const writeEntries = `
  insert into search (id, terms) select id, array_to_tsvector(array(select json_array_elements_text(new.terms::json)))
  from unnest($1::bigint[], $2::text[]) as new (id, terms)
  on conflict (id) do update set terms = excluded.terms`
