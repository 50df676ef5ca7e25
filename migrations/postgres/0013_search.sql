-- Terms of messages in the queue and in the history (src/store/search/search-terms.ts), by which they are found. The id of an entry is the recipient
-- id of its first recipient, so that the entries of a message are one range.
create table search (
  id    bigint   primary key,
  terms tsvector not null
);
create index search_terms on search using gin (terms);

-- Sessions do not use bitmap scans, but the index is read by no other.
create function entries_with(asked tsquery) returns setof bigint language sql stable set enable_bitmapscan = on
  as 'select id from search where terms @@ asked';

-- Messages whose entries are to be written. A row is read once and deleted.
create table unindexed (
  message bigint primary key
);
