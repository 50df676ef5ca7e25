-- Counts by hour and minute beside those of traffic, see src/store/records/series.ts.
create table series (
  dimension text   collate "C" not null, -- destination, provider, sender_domain, node, cause, delay
  at        bigint not null, -- begin of the hour; of a cause or delay of the last days, of the minute
  name      text   collate "C" not null, -- '' is the sum of those that are not kept
  accepted  bigint not null,
  delivered bigint not null,
  deferred  bigint not null,
  bounced   bigint not null,
  expired   bigint not null,
  primary key (dimension, at, name)
);

-- What transactions have counted and `series` does not have yet.
create table series_delta (
  id     bigint generated always as identity primary key,
  counts json   not null,
  folded int    not null default 0 -- 1 in the transaction that adds it to `series`
);

-- Mail that waits, once a minute; after some days once an hour, its maximum.
create table backlog (
  at        bigint primary key,
  incoming  bigint not null, -- recipients
  active    bigint not null,
  deferred  bigint not null,
  hold      bigint not null,
  scheduled bigint not null,
  oldest    bigint not null -- age of the oldest message in ms; 0 without mail
);

-- What changed the relay: starts, reloads, suspensions.
create table queue_mark (
  at   bigint not null,
  node text collate "C" not null,
  kind text collate "C" not null,
  text text collate "C" not null,
  primary key (at, node, kind, text)
);
