/** Statements of the index by which messages are found. The entries of a message have the row numbers of its recipients. */
import { recipientRange } from '../../sql/id-ranges.ts'
import type { SearchTerm } from '../../search/search-terms.ts'

/** Tables of entries: the new entries are in one of them. */
export const SEARCH_TABLES = ['search_0', 'search_1'] as const
export type SearchTable = (typeof SEARCH_TABLES)[number]

export const matchOf = ({ text, isPrefix }: SearchTerm): string => `"${text.replaceAll('"', '""')}"${isPrefix ? ' *' : ''}`

export const insertEntry = (table: SearchTable): string => `insert into ${table} (rowid, terms) values (?, ?)`
/** The row, if its entry has a term. Without the cast, FTS5 does not compare the number. */
export const hasTerm = (table: SearchTable): string => `select 1 from ${table} where ${table} match ? and rowid = cast(? as integer)`
export const deleteEntry = (table: SearchTable): string => `insert into ${table} (${table}, rowid, terms) values ('delete', ?, ?)`
export const emptyEntries = (table: SearchTable): string => `insert into ${table} (${table}) values ('delete-all')`

export const unindexed = 'select message from unindexed order by message limit ?'
export const indexedThrough = 'delete from unindexed where message <= ?'
export const indexAnew = 'insert into unindexed (message) values (?) on conflict do nothing'
export const searchedMessage = 'select sender, message_id, subject from message where id = ? and from_header is not null'
export const addressesOf = `select address from recipient where id ${recipientRange(':message')} order by id`
export const recordsOfMessage = 'select record from history where message = ? order by seq'

// --- the state of both tables

/**
 * `search_table` is the number of the table of new entries, `search_former` the highest id in the other, `search_last` that of all,
 * `search_copied` that whose entries were copied out of the other table; 0 when no copy is under way.
 */
export const searchState = `
  select coalesce(max(value) filter (where name = 'search_table'), 0) as current,
    coalesce(max(value) filter (where name = 'search_former'), 0) as former,
    coalesce(max(value) filter (where name = 'search_last'), 0) as last,
    coalesce(max(value) filter (where name = 'search_copied'), 0) as copied
  from meta where name in ('search_table', 'search_former', 'search_last', 'search_copied')`
export const saveSearchState = 'insert into meta (name, value) values (?, ?) on conflict (name) do update set value = excluded.value'
/** Ids of the messages that queue and history have. */
export const knownMessages = `
  select id from message where id > :after and id <= :through and from_header is not null
  union select message from history where message > :after and message <= :through
  order by 1 limit :limit`
export const numberKnown = `select count(*) from (${knownMessages})`

// --- erasure

/** Before the terms of addresses (search/search-terms). */
export const FIRST_ADDRESS = 'a:'
export const createVocabulary = (table: SearchTable): string =>
  `create virtual table if not exists temp.${table}_terms using fts5vocab('main', '${table}', 'row')`
export const addressTerms = (table: SearchTable): string =>
  `select term from temp.${table}_terms where term > ? and term < 'a;' order by term limit ?`
export const entriesWith = (table: SearchTable): string =>
  `select rowid from ${table} where ${table} match ? and rowid > cast(? as integer) order by rowid limit ?`
/** A row when the queue or the history has the message. */
export const isKnownMessage = `
  select 1 from message where id = :message union all select 1 from history where message = :message limit 1`
