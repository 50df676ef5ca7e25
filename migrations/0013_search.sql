-- Terms of messages in the queue and in the history (src/store/search/search-terms.ts), by which they are found. The row number of an entry is
-- the recipient id of its first recipient. A term ends at a blank, and at nothing else. Entries of forgotten messages are not deleted one by
-- one, which takes twice the time of writing them: new ones go to one of the tables, and the other is emptied when its messages are forgotten
-- (src/store/sqlite/search/search-index.ts).
create virtual table search_0 using fts5 (terms, content = '', columnsize = 0, detail = none,
  tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'");
create virtual table search_1 using fts5 (terms, content = '', columnsize = 0, detail = none,
  tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'");

-- An entry that is erased leaves no term in the pages of its table.
insert into search_0 (search_0, rank) values ('secure-delete', 1);
insert into search_1 (search_1, rank) values ('secure-delete', 1);

-- Messages whose entries are to be written.
create table unindexed (
  message integer primary key
) strict, without rowid;

-- Mail without a text of its From field was queued with queue_index_headers = no.
create trigger message_unindexed after insert on message when new.from_header is not null begin
  insert or ignore into unindexed (message) values (new.id);
end;
