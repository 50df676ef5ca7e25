-- Shares of the queue, see src/mail/message.ts. `share` is null for mail that no share counts.
alter table message add column share text;
alter table recipient
  add column band smallint not null default 0, -- number of its class
  add column turn bigint;                      -- place among the mail of its destination and band that is due; null by due time

-- A waiting recipient has an entry in one of the two. Older nodes read recipient_due, which the first one replaces.
create index recipient_due_by_band on recipient (shard, destination, band, due_at, id) where state = 'waiting' and not suspect and turn is null;
create index recipient_turn on recipient (shard, destination, band, turn, id) where state = 'waiting' and not suspect and turn is not null;
