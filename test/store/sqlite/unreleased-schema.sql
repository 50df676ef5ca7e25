-- The queue: one row per message and per recipient, contents in chunks, history, and what operators did.
-- Times are milliseconds since the epoch. A recipient is named message * 131072 + position and a chunk
-- body * 65536 + number, so that what belongs together is one range of ids and needs no index of its own.
-- CHECKs spell out their alternatives: for `in (…)` SQLite would build a temporary table with every row written.

create table message (
  id            integer primary key autoincrement, -- never handed out again, also when the newest message left
  created_at    integer not null,
  arrived_at    integer not null,
  sender        text    not null, -- '' is the null reverse-path
  size          integer not null check (size >= 0),
  body          integer not null, -- names its chunks; a requeued message keeps it
  shares_body   integer not null default 0 check (shares_body in (0, 1)), -- another entry may have the same body
  ret           text    check (ret in ('full', 'hdrs')),
  envid         text,
  smtputf8      integer not null check (smtputf8 in (0, 1)),
  body_type     text    check (body_type in ('7bit', '8bitmime')),
  message_id    text,
  placement     text    not null default 'queued'
    check (placement = 'queued' or placement = 'hold' or placement = 'corrupt' or placement = 'trash'),
  deleted_at    integer, -- when it went to the trash
  why           text,    -- why it is corrupt
  forced_expire integer not null default 0 check (forced_expire in (0, 1)),
  warnings      integer not null default 0, -- delay warnings sent
  warn_at       integer, -- when the next one may be due; set only once something failed, so that good mail never pays for the index
  check ((placement = 'trash') = (deleted_at is not null)),
  check ((placement = 'corrupt') = (why is not null))
) strict;

create index message_warning on message (warn_at) where warn_at is not null and placement = 'queued';
create index message_trash on message (deleted_at) where deleted_at is not null;
create index message_sharing on message (body) where shares_body = 1;

create table recipient (
  id          integer primary key,
  state       text    not null
    check (state = 'waiting' or state = 'leased' or state = 'parked'
      or state = 'delivered' or state = 'bounced' or state = 'expired' or state = 'removed'),
  destination text    not null,
  address     text    not null,
  notify      text,    -- 'never', or a list such as 'success,delay'
  orcpt       text,
  due_at      integer not null,
  kept_due_at integer, -- the due time it had before an operator's flush
  expires_at  integer not null,
  steps       integer not null default 0 check (steps >= 0),
  attempts    integer not null default 0 check (attempts >= 0),
  starts      integer not null default 0 check (starts >= 0), -- leases begun since the last attempt that ended
  suspect     integer not null default 0 check (suspect in (0, 1)), -- waits after two crashes: a column, for the index
  settled_at  integer,
  debt        text    check (debt = 'failure' or debt = 'delay' or debt = 'success'),
  last        text,    -- the last outcome, as JSON
  -- No row is half-settled: it is alive without an end, or final with one, and each debt fits its state.
  check ((settled_at is null) = (state = 'waiting' or state = 'leased' or state = 'parked')),
  check (kept_due_at is null or settled_at is null),
  check (state <> 'waiting' or suspect = (starts >= 2)),
  check (debt is null
    or (debt = 'delay' and settled_at is null)
    or (debt = 'failure' and (state = 'bounced' or state = 'expired'))
    or (debt = 'success' and state = 'delivered'))
) strict;

-- Work is found by destination. A suspect is kept apart: it is tried one at a time. (Equalities, so that SQLite can
-- answer from the index alone.)
create index recipient_due on recipient (destination, due_at) where state = 'waiting' and suspect = 0;
create index recipient_suspect on recipient (due_at) where state = 'waiting' and suspect = 1;
create index recipient_expiry on recipient (expires_at) where state = 'waiting';
-- As large as the active queue: what a crash leaves behind is found without reading the whole table.
create index recipient_leased on recipient (destination) where state = 'leased';
create index recipient_debt on recipient (id) where debt is not null;

create table chunk (
  id   integer primary key,
  crc  integer not null, -- CRC-32 of the data: what was queued is what is delivered
  data blob    not null
) strict;

-- Contents whose message is still on its way in.
create table staged (
  body integer primary key
) strict;

-- Attempts of mail that is still here; they go into the departed record when the message leaves.
create table attempt (
  recipient integer not null,
  number    integer not null,
  at        integer not null,
  relay     text,
  outcome   text    not null
    check (outcome = 'delivered' or outcome = 'deferred' or outcome = 'bounced' or outcome = 'expired'),
  status    text    not null, -- JSON
  delays    text    not null, -- JSON
  primary key (recipient, number)
) strict, without rowid;

-- One row per message that has left, with its recipients and all their attempts.
create table departed (
  seq     integer primary key autoincrement, -- the order of leaving, without gaps: how many are kept is a subtraction
  message integer not null,
  left_at integer not null,
  record  text    not null -- JSON
) strict;

create index departed_message on departed (message);

create table destination (
  name           text primary key,
  dead_until     integer,
  probe_interval integer,
  suspended_by   text,
  reason         text -- JSON
) strict, without rowid;

create table audit (
  id        integer primary key,
  at        integer not null,
  who       text    not null,
  action    text    not null,
  arguments text    not null,
  changed   integer not null
) strict;

create table meta (
  name  text primary key,
  value integer not null
) strict, without rowid;
