-- Counts by hour and minute beside those of traffic, see src/store/records/series.ts.
create table series (
  dimension text    not null, -- destination, provider, sender_domain, cause, delay
  at        integer not null, -- begin of the hour; of a cause or delay of the last days, of the minute
  name      text    not null, -- '' is the sum of those that are not kept
  accepted  integer not null,
  delivered integer not null,
  deferred  integer not null,
  bounced   integer not null,
  expired   integer not null,
  primary key (dimension, at, name)
) strict, without rowid;

-- What transactions have counted and `series` does not have yet.
create table series_delta (
  id     integer primary key,
  counts text    not null,          -- JSON
  folded integer not null default 0 -- 1 in the transaction that adds it to `series`
) strict;

-- Mail that waits, once a minute; after some days once an hour, its maximum.
create table backlog (
  at        integer primary key,
  incoming  integer not null, -- recipients
  active    integer not null,
  deferred  integer not null,
  hold      integer not null,
  scheduled integer not null,
  oldest    integer not null -- age of the oldest message in ms; 0 without mail
) strict, without rowid;

-- What changed the relay: starts, reloads, suspensions.
create table queue_mark (
  at   integer not null,
  node text    not null,
  kind text    not null,
  text text    not null,
  primary key (at, node, kind, text)
) strict, without rowid;
