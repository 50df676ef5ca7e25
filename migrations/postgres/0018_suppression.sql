-- Addresses that senders are refused, see src/store/records/suppression-entry.ts.
create table suppression (
  scope        text    collate "C" not null, -- sender domain, or * for all
  address      text    collate "C" not null, -- address, or @domain
  reason       text,             -- null while its failures do not list the address yet
  reply        text,             -- the last reply that refused it
  destination  text    collate "C",
  since        bigint,           -- time of the listing
  until        bigint,           -- null for never
  hits         bigint  not null, -- replies that refused it
  first_hit_at bigint,
  last_hit_at  bigint,
  added_by     text    not null,
  listings     bigint  not null, -- automatic ones
  strikes      text    not null, -- JSON: times of the failures that count towards the next listing
  seq          bigint  not null, -- greater at each change
  primary key (scope, address)
);
create index suppression_seq on suppression (seq, scope, address);
create index suppression_until on suppression (until) where until is not null;
create index suppression_bounce on suppression (scope, since) where reason = 'bounce';
create index suppression_hit on suppression (destination, last_hit_at) where last_hit_at is not null;

-- The last seq: its row is changed before those of `suppression`, so that seq grows in the order of the commits.
create table suppression_change (
  id  bigint primary key,
  seq bigint not null
);

-- Sender domains for which no address is listed until an operator resumes it.
create table suppression_stop (
  scope text   collate "C" primary key,
  at    bigint not null
);
