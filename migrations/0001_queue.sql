-- The queue: one row per message and per recipient, contents in chunks, history, and the audit log of operators' actions.
-- Times are milliseconds since 1970. The id of a recipient is message * 131072 + position, and the id of a chunk is
-- content * 65536 + number. So the recipients of a message, and the chunks of a content, are one range of ids and need no index.
-- A CHECK lists its alternatives with `or`, because for `in (…)` SQLite builds a temporary table at every write of a row.

create table message (
  id            integer primary key, -- reserved in `meta` before use, so that no id is used twice, not even after the newest message has left
  created_at    integer not null,
  arrived_at    integer not null,
  sender        text    not null, -- '' is the null reverse-path
  size          integer not null check (size >= 0),
  content_id    integer not null, -- id of its chunks; a requeued message keeps it
  prepended_headers text, -- header fields sent before the content
  shares_content integer not null default 0 check (shares_content in (0, 1)), -- 1: another message may have the same content
  ret           text    check (ret in ('full', 'hdrs')),
  envid         text,
  smtputf8      integer not null check (smtputf8 in (0, 1)),
  body_type     text    check (body_type in ('7bit', '8bitmime')),
  message_id    text,
  client        text, -- from which it came: 'mx.example[192.0.2.1]'
  sasl_username text, -- user name of the client's login
  placement     text    not null default 'queued'
    check (placement = 'queued' or placement = 'hold' or placement = 'corrupt' or placement = 'trash'),
  deleted_at    integer, -- time of the move to the trash
  why           text,    -- reason why it is corrupt
  forced_expire integer not null default 0 check (forced_expire in (0, 1)),
  warnings      integer not null default 0, -- number of delay warnings sent
  warn_at       integer, -- time when the next warning may be due; null until an attempt fails, so that other mail has no entry in the index
  envelope_crc  integer not null, -- CRC-32 of the columns above that do not change, see checksums.ts
  -- Sum of the columns that change. The factors are odd, so that a change of one bit changes the sum. The placement is
  -- represented by its first letter.
  state_sum     integer generated always as (
    unicode(placement) + 3 * coalesce(deleted_at, -1) + 5 * forced_expire + 7 * warnings + 11 * coalesce(warn_at, -1) + 13 * shares_content) stored,
  is_sound      integer generated always as (state_sum is (
    unicode(placement) + 3 * coalesce(deleted_at, -1) + 5 * forced_expire + 7 * warnings + 11 * coalesce(warn_at, -1) + 13 * shares_content)) virtual,
  check ((placement = 'trash') = (deleted_at is not null)),
  check ((placement = 'corrupt') = (why is not null))
) strict;

create index message_warning on message (warn_at) where warn_at is not null and placement = 'queued';
-- Messages on hold, corrupt and deleted, in the order of ids. Other mail has no entry.
create index message_aside on message (placement) where placement <> 'queued';
create index message_trash on message (deleted_at) where deleted_at is not null;
create index message_sharing on message (content_id) where shares_content = 1;

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
  kept_due_at integer, -- due time before an operator's flush
  expires_at  integer not null,
  steps       integer not null default 0 check (steps >= 0),
  attempts    integer not null default 0 check (attempts >= 0),
  delivery_starts      integer not null default 0 check (delivery_starts >= 0), -- number of deliveries started since the last attempt that ended
  suspect     integer not null default 0 check (suspect in (0, 1)), -- 1 when waiting after two crashes; a column, because an index needs it
  settled_at  integer,
  notice_due        text    check (notice_due = 'failure' or notice_due = 'delay' or notice_due = 'success'),
  last        text,    -- the last outcome, as JSON
  last_crc    integer, -- CRC-32 of the last outcome
  envelope_crc integer not null, -- CRC-32 of id, destination, address, notify and orcpt, see checksums.ts
  -- Sum of the columns of the schedule, as in message.
  schedule_sum integer generated always as (
    unicode(state) + 3 * due_at + 5 * coalesce(kept_due_at, -1) + 7 * expires_at + 11 * steps + 13 * attempts + 17 * delivery_starts
    + 19 * suspect + 23 * coalesce(settled_at, -1) + 29 * coalesce(unicode(notice_due), -1)) stored,
  is_sound    integer generated always as (schedule_sum is (
    unicode(state) + 3 * due_at + 5 * coalesce(kept_due_at, -1) + 7 * expires_at + 11 * steps + 13 * attempts + 17 * delivery_starts
    + 19 * suspect + 23 * coalesce(settled_at, -1) + 29 * coalesce(unicode(notice_due), -1))) virtual,
  -- A live recipient has no settled_at and a final recipient has one. notice_due is possible in the state.
  check ((settled_at is null) = (state = 'waiting' or state = 'leased' or state = 'parked')),
  check (kept_due_at is null or settled_at is null),
  check (state <> 'waiting' or suspect = (delivery_starts >= 2)),
  check (notice_due is null
    or (notice_due = 'delay' and settled_at is null)
    or (notice_due = 'failure' and (state = 'bounced' or state = 'expired'))
    or (notice_due = 'success' and state = 'delivered'))
) strict;

-- Due recipients are found by destination. Suspects have an index of their own, because they are tried one at a time. The
-- conditions are equalities, so that SQLite can answer from the index alone.
create index recipient_due on recipient (destination, due_at) where state = 'waiting' and suspect = 0;
create index recipient_suspect on recipient (due_at) where state = 'waiting' and suspect = 1;
create index recipient_expiry on recipient (expires_at) where state = 'waiting';
-- Has as many entries as the active queue. After a crash, the leased recipients are found without reading the whole table.
create index recipient_leased on recipient (destination) where state = 'leased';
-- Held, corrupt and deleted mail by destination. Other mail has no entry.
create index recipient_parked on recipient (destination) where state = 'parked';
create index recipient_notice_due on recipient (id) where notice_due is not null;

create table chunk (
  id   integer primary key,
  crc  integer not null, -- CRC-32 of the data, checked before a delivery
  data blob    not null
) strict;

-- Contents whose message is still being received.
create table staged (
  content_id integer primary key
) strict;

-- Maildrop files whose message was queued. A crash between the commit and the removal of the file leaves the file in place; its
-- row then prevents a second message. The row is deleted when the removal of the file is durable.
create table maildrop_file (
  name text primary key -- name, size and time of the last change
) strict, without rowid;

-- Attempts of queued mail. They become part of the history record when the message leaves the queue.
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

-- One row per message that has left the queue, with its recipients and all attempts.
create table history (
  seq     integer primary key, -- order of leaving, without gaps, so that a subtraction gives the number of rows; never used twice
  message integer not null,
  left_at integer not null,
  record  text    not null -- JSON
) strict;

create index history_message on history (message);
create index history_left on history (left_at); -- times of leaving ascend almost, so that entries are appended

create table destination (
  name           text primary key,
  dead_until     integer,
  probe_interval integer,
  suspended_by   text,
  suspended_until integer, -- when the suspension ends by itself
  suspend_reason text,
  site_status    text, -- JSON
  check (suspended_by is not null or (suspended_until is null and suspend_reason is null))
) strict, without rowid;

-- Actions of operators. An operation on many messages is running until it has ended.
create table audit (
  id        integer primary key,
  at        integer not null,
  last_at   integer not null, -- time of the last round, or of the end
  who       text    not null,
  action    text    not null,
  arguments text    not null,
  changed   integer not null, -- number of changed messages
  matched   integer not null default 0, -- number of selected messages
  in_transfer integer not null default 0, -- number of selected messages that were in transfer at the end
  unknown   integer not null default 0, -- number of ids that were not found
  expected  integer, -- number of messages that it is expected to select
  state     text    not null check (state = 'running' or state = 'done' or state = 'failed' or state = 'cancelled'),
  reason    text,    -- the operator's reason
  error     text,    -- why it failed, or who cancelled it
  undo_until integer, -- time until which it can be undone
  undoes    integer  -- the operation that this one undoes
) strict;

create index audit_running on audit (id) where state = 'running';
create index audit_undoes on audit (undoes) where undoes is not null;

-- Messages that operations have changed, each with its placement before.
create table operated (
  operation integer not null,
  message   integer not null,
  was       text    not null check (was = 'queued' or was = 'hold' or was = 'corrupt' or was = 'trash'),
  primary key (operation, message)
) strict, without rowid;

create index operated_message on operated (message, operation);

-- Requests that were carried out, so that a repeated one has no second effect.
create table kept_request (
  key    text    primary key,
  digest text    not null, -- SHA-256 of the request
  at     integer not null,
  answer text    not null
) strict, without rowid;

create index kept_request_at on kept_request (at);

-- Tokens of programs that use the HTTP interface.
create table access_token (
  name         text    primary key,
  role         text    not null check (role = 'viewer' or role = 'operator' or role = 'sender' or role = 'admin'),
  content      integer not null check (content in (0, 1)), -- 1: may read header and body of messages
  destinations text,    -- pattern of the destinations that it is limited to
  hash         text    not null, -- SHA-256 of the secret
  added_at     integer not null,
  added_by     text    not null,
  expires_at   integer,
  last_used_at integer  -- begin of an hour
) strict, without rowid;

create unique index access_token_hash on access_token (hash);

-- Access entries that operators have added by command.
create table access_entry (
  subject    text    not null check (subject = 'client' or subject = 'sender' or subject = 'recipient'),
  key        text    not null, -- in lower case
  action     text    not null,
  added_at   integer not null,
  added_by   text    not null,
  expires_at integer,
  primary key (subject, key)
) strict, without rowid;

-- MTA-STS policies of recipient domains (RFC 8461).
create table sts_policy (
  domain     text    primary key,
  id         text    not null,
  mode       text    not null check (mode = 'enforce' or mode = 'testing' or mode = 'none'),
  mx         text    not null, -- JSON list of patterns
  text       text    not null, -- as fetched
  fetched_at integer not null,
  expires_at integer not null,
  used_at    integer not null,
  failed_at  integer,
  failure    text
) strict, without rowid;

-- Destinations whose mail exchangers belong to a provider.
create table provider_member (
  destination text primary key,
  provider    text not null
) strict, without rowid;

-- Providers with effects of reply rules.
create table provider (
  name    text primary key,
  effects text not null -- JSON
) strict, without rowid;

-- Sessions of TLS by day, for reports to domains (RFC 8460). Counts are those of one process (source), and only grow.
create table tls_result (
  day          text not null, -- UTC, 2026-11-23
  domain       text not null, -- whose TLSRPT record asks for the report
  source       text not null,
  key          text not null, -- digest of the columns from policy to reason
  policy       text not null, -- JSON object as in the report
  type         text not null, -- success, or the type of failure
  mx           text not null,
  receiving_ip text not null,
  sending_ip   text not null,
  reason       text not null,
  sessions     integer not null,
  primary key (day, domain, source, key)
) strict, without rowid;

-- Reports about a day. A claim keeps other nodes from the same report.
create table tls_report (
  day           text not null,
  domain        text not null,
  claimed_until integer not null,
  ended         text check (ended is null or ended = 'sent' or ended = 'unwanted'),
  primary key (day, domain)
) strict, without rowid;

-- Events that programs subscribe to, written with what happened, one row or more for a transaction. Numbers have no gaps, and the newest
-- event is never deleted, so that no number is used twice. A row with a row number takes half the space in the write-ahead log of one
-- without, since it is appended.
create table event (
  last  integer primary key, -- number of its last event
  at    integer not null,    -- the earliest time of its events
  lines text    not null     -- a line for each event: type, time, data as JSON
) strict;

create table subscription (
  name        text    primary key,
  owner       text    not null check (owner = 'configuration' or owner = 'command'),
  settings    text    not null, -- JSON: target, filter and secrets
  created_at  integer not null,
  created_by  text    not null,
  cursor      integer not null, -- number of the last event that is done
  state       text    not null default 'active' check (state = 'active' or state = 'disabled'),
  why         text,    -- why it is disabled
  tries       integer not null default 0, -- failed tries of the next event
  refusals    integer not null default 0, -- refusals among them of the event alone
  due_at      integer, -- time of the next try
  last_answer text,    -- JSON
  losses      text    not null default '[]' -- JSON: deleted events of which it was not told yet
) strict, without rowid;

-- Events that the target of a subscription refused.
create table parked (
  subscription text    not null,
  seq          integer not null,
  tries        integer not null,
  parked_at    integer not null,
  due_at       integer, -- time of the next try, after an operator asked for one
  answer       text    not null,
  primary key (subscription, seq)
) strict, without rowid;

create index parked_due on parked (subscription, due_at, seq) where due_at is not null;

create table meta (
  name  text primary key,
  value integer not null
) strict, without rowid;

-- Recipients by what happened to them, per minute (`at` is its begin). The row 0 is the sum of all minutes before those kept.
create table traffic (
  at        integer primary key,
  accepted  integer not null,
  delivered integer not null,
  deferred  integer not null,
  bounced   integer not null,
  expired   integer not null,
  deleted   integer not null
) strict;

-- Part of the ids of events, so that another queue has other ids.
insert into meta (name, value) values ('event_epoch', abs(random() % 2176782336));
