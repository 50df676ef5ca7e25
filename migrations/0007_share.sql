-- Shares of the queue, see src/mail/message.ts. `share` is null for mail that no share counts.
alter table message add column share text;
alter table recipient add column band integer not null default 0; -- number of its class
alter table recipient add column turn integer; -- place among the mail of its destination and band that is due; null for the order of due times

-- A waiting recipient has an entry in one of the two. SQLite answers from the first alone, since each column of its condition is
-- compared with a constant: `turn is null` is no comparison, and of three terms without parentheses SQLite takes the last.
drop index recipient_due;
create index recipient_due on recipient (destination, band, due_at) where turn is (+null) and (state = 'waiting' and suspect = 0);
create index recipient_turn on recipient (destination, band, turn) where state = 'waiting' and suspect = 0 and turn is not null;
