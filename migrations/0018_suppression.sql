-- Addresses that senders are refused, see src/store/records/suppression-entry.ts.
create table suppression (
  scope        text    not null, -- sender domain, or * for all
  address      text    not null, -- address, or @domain
  reason       text,             -- null while its failures do not list the address yet
  reply        text,             -- the last reply that refused it
  destination  text,
  since        integer,          -- time of the listing
  until        integer,          -- null for never
  hits         integer not null, -- replies that refused it
  first_hit_at integer,
  last_hit_at  integer,
  added_by     text    not null,
  listings     integer not null, -- automatic ones
  strikes      text    not null, -- JSON: times of the failures that count towards the next listing
  seq          integer not null, -- greater at each change
  primary key (scope, address)
) strict, without rowid;
create index suppression_seq on suppression (seq, scope, address);
create index suppression_until on suppression (until) where until is not null;
create index suppression_bounce on suppression (scope, since) where reason = 'bounce';
create index suppression_hit on suppression (destination, last_hit_at) where last_hit_at is not null;

-- The last seq: its row is changed before those of `suppression`, so that seq grows in the order of the commits.
create table suppression_change (
  id  integer primary key,
  seq integer not null
) strict, without rowid;

-- Sender domains for which no address is listed until an operator resumes it.
create table suppression_stop (
  scope text    not null primary key,
  at    integer not null
) strict, without rowid;
