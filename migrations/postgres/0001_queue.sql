-- The queue in PostgreSQL, shared by several nodes. Times are milliseconds since 1970. The id of a recipient is
-- message * 131072 + position, so that the recipients of a message are one range of ids and need no index.
-- A destination belongs to one shard, and a shard to one node, who alone claims its mail.

create table queue (
  one            boolean primary key default true check (one),
  id             uuid not null default gen_random_uuid(),
  version        int  not null, -- number of the last migration
  oldest_known   int  not null, -- a deferd that does not know this migration may not use the queue
  shards         int  not null,
  keys           bigint not null default 0 -- number of changes in provider_member
);

create sequence node_id maxvalue 9007199254740991; -- a number per life of a process, never used twice
create sequence message_id maxvalue 68719476735;  -- ids of recipients are below 2^53

create table node (
  id        bigint primary key,
  session   bigint not null default 1, -- increased at each reconnection; statements of an earlier session fail
  name      text not null,             -- node_name, a label
  program   text not null,             -- version of deferd
  knows     int  not null,             -- number of the last migration that it knows
  settings  text not null,             -- hash of the settings that must be equal on all nodes
  joined_at timestamptz not null default now(),
  draining  boolean not null default false,
  keys      bigint not null default 0 -- as in queue; a transaction of a node that has not seen the last change fails
);

-- Beats. Lost in a crash of the server and written again by the next beats.
create unlogged table pulse (
  node bigint primary key,
  beat bigint not null,
  at   timestamptz not null default clock_timestamp() -- for listings; no takeover depends on it
);

create table shard (
  id    smallint primary key,
  owner bigint,                   -- a node; null when free
  epoch bigint not null default 0 -- number of changes of the owner
);
create index shard_owner on shard (owner);

-- Columns of fixed width come first, so that no row has padding.
create table message (
  id             bigint   primary key,
  created_at     bigint   not null,
  arrived_at     bigint   not null,
  size           bigint   not null check (size >= 0),
  content_id     bigint   not null, -- id of its content; a requeued message keeps it
  content_crc    bigint,            -- CRC-32 of `content`
  warn_at        bigint,            -- time when the next warning may be due; null until an attempt fails
  deleted_at     bigint,            -- time of the move to the trash
  recipients     int      not null, -- number of its recipients
  warnings       int      not null default 0, -- number of delay warnings sent
  home           smallint not null, -- shard of its first recipient, whose owner sends the notices
  shares_content boolean  not null default false, -- true: another message may have the same content
  smtputf8       boolean  not null,
  forced_expire  boolean  not null default false,
  placement      text     not null default 'queued' check (placement in ('queued', 'hold', 'corrupt', 'trash')),
  sender         text     not null, -- '' is the null reverse-path
  prepended_headers text,           -- header fields sent before the content
  ret            text     check (ret in ('full', 'hdrs')),
  envid          text,
  body_type      text     check (body_type in ('7bit', '8bitmime')),
  message_id     text,
  client         text,              -- from which it came: 'mx.example[192.0.2.1]'
  sasl_username  text,              -- user name of the client's login
  why            text,              -- reason why it is corrupt
  content        bytea,             -- a content of one chunk that no other message has; others are in `chunk`
  check ((placement = 'trash') = (deleted_at is not null)),
  check ((placement = 'corrupt') = (why is not null))
) with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0);
alter table message alter content set storage external;

create index message_warning on message (home, warn_at) where warn_at is not null and placement = 'queued';
-- Messages on hold, corrupt and deleted. Other mail has no entry.
create index message_aside on message (placement, id) where placement <> 'queued';
create index message_trash on message (deleted_at) where deleted_at is not null;
create index message_sharing on message (content_id) where shares_content;

create table recipient (
  id          bigint   primary key,
  due_at      bigint   not null,
  kept_due_at bigint,                -- due time before an operator's flush
  expires_at  bigint   not null,
  settled_at  bigint,
  leased_by   bigint,                -- the node that alone may settle it
  steps       int      not null default 0 check (steps >= 0),
  attempts    int      not null default 0 check (attempts >= 0),
  delivery_starts int  not null default 0 check (delivery_starts >= 0), -- number of deliveries started since the last attempt that ended
  shard       smallint not null,     -- shard of `destination`, or of its provider
  home        smallint not null,     -- as in message
  suspect     boolean  not null default false, -- true when waiting after two deliveries whose node failed
  parks       boolean  not null default false, -- true when its message is held, corrupt or deleted: parked when the lease ends
  state       text     not null check (state in ('waiting', 'leased', 'parked', 'delivered', 'bounced', 'expired', 'removed')),
  destination text     collate "C" not null,
  address     text     not null,
  notify      text,                  -- 'never', or a list such as 'success,delay'
  orcpt       text,
  notice_due  text     check (notice_due in ('failure', 'delay', 'success')),
  last        text,                  -- the last outcome, as JSON
  check ((state = 'leased') = (leased_by is not null)),
  check ((settled_at is null) = (state in ('waiting', 'leased', 'parked'))),
  check (parks or state <> 'parked'),
  check (kept_due_at is null or settled_at is null),
  check (notice_due is null
    or (notice_due = 'delay' and settled_at is null)
    or (notice_due = 'failure' and state in ('bounced', 'expired'))
    or (notice_due = 'success' and state = 'delivered'))
) with (
  -- Room for the new version of a row beside the old one: an update to another page writes half as much log again.
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);

-- A flush makes thousands of recipients due at one time, so the order of claims ends with the id.
create index recipient_due on recipient (shard, destination, due_at, id) where state = 'waiting' and not suspect;
create index recipient_suspect on recipient (shard, due_at, id) where state = 'waiting' and suspect;
create index recipient_expiry on recipient (shard, expires_at, id) where state = 'waiting';
-- Has as many entries as all active queues.
create index recipient_leased on recipient (leased_by, destination) where leased_by is not null;
-- Held, corrupt and deleted mail by destination. Other mail has no entry.
create index recipient_parked on recipient (shard, destination) where state = 'parked';
create index recipient_notice_due on recipient (home, id) where notice_due is not null;

create table chunk (
  content_id bigint not null,
  number     int    not null,
  crc        bigint not null, -- CRC-32 of the data
  data       bytea  not null,
  primary key (content_id, number)
);
alter table chunk alter data set storage external;

-- Contents whose message is still being received, by the node that receives it.
create table staged (
  content_id bigint primary key,
  node       bigint not null
);

-- Maildrop files whose message was queued and whose removal may not be durable yet. Each node has a maildrop of its own.
create table maildrop_file (
  name text not null,
  node text not null, -- node_name
  primary key (name, node)
);

-- Attempts of queued mail. They become part of the history record when the message leaves the queue.
create table attempt (
  recipient bigint not null,
  number    int    not null,
  at        bigint not null,
  relay     text,
  outcome   text   not null check (outcome in ('delivered', 'deferred', 'bounced', 'expired')),
  status    text   not null, -- JSON
  delays    text   not null, -- JSON
  primary key (recipient, number)
);

-- One row per message that has left the queue, with its recipients and all attempts.
create table history (
  seq     bigint generated always as identity primary key, -- order of leaving
  message bigint not null,
  left_at bigint not null,
  node    bigint not null, -- the node that recorded the last outcome
  record  text   not null  -- JSON
);
create index history_message on history (message);
create index history_left on history (left_at);

create table destination (
  name            text     collate "C" primary key,
  shard           smallint not null,
  dead_until      bigint,
  probe_interval  bigint,
  suspended_by    text,
  suspended_until bigint, -- when the suspension ends by itself
  suspend_reason  text,
  site_status     text,   -- JSON
  check (suspended_by is not null or (suspended_until is null and suspend_reason is null))
);
create index destination_shard on destination (shard);

-- Changes by one node that the owner of a shard must see. Each is a hint; the tables above have the facts.
create table arrival (
  shard       smallint not null,
  kind        text     not null check (kind in ('due', 'notices', 'destinations', 'providers')),
  revive      boolean  not null default false, -- due: true after a flush, which opens a dead destination
  destination text,   -- due
  due_at      bigint, -- due
  message     bigint, -- notices
  record      text    -- destinations, providers: the saved state, as JSON
);
create index arrival_shard on arrival (shard);

-- Actions of operators. An operation on many messages is running until it has ended.
create table audit (
  id        bigint generated always as identity primary key,
  at        bigint not null,
  last_at   bigint not null, -- time of the last round, or of the end
  runner    bigint,          -- the node that carries it out; null unless it is running
  undo_until bigint,         -- time until which it can be undone
  undoes    bigint,          -- the operation that this one undoes
  changed   int    not null, -- number of changed messages
  matched   int    not null default 0, -- number of selected messages
  in_transfer int  not null default 0, -- number of selected messages that were in transfer at the end
  unknown   int    not null default 0, -- number of ids that were not found
  expected  int,             -- number of messages that it is expected to select
  state     text   not null check (state in ('running', 'done', 'failed', 'cancelled')),
  node      text   not null, -- node_name
  who       text   not null,
  action    text   not null,
  arguments text   not null,
  reason    text,            -- the operator's reason
  error     text,            -- why it failed, or who cancelled it
  check ((state = 'running') = (runner is not null))
);
create index audit_runner on audit (runner) where state = 'running';
create index audit_undoes on audit (undoes) where undoes is not null;

-- Messages that operations have changed, each with its placement before.
create table operated (
  operation bigint not null,
  message   bigint not null,
  was       text   not null check (was in ('queued', 'hold', 'corrupt', 'trash')),
  primary key (operation, message)
);
create index operated_message on operated (message, operation);

-- Requests that were carried out, so that a repeated one has no second effect.
create table kept_request (
  key    text   primary key,
  digest text   not null, -- SHA-256 of the request
  at     bigint not null,
  answer text   not null
);
create index kept_request_at on kept_request (at);

-- Tokens of programs that use the HTTP interface.
create table access_token (
  name         text    collate "C" primary key,
  role         text    not null check (role in ('viewer', 'operator', 'sender', 'admin')),
  content      boolean not null, -- true: may read header and body of messages
  destinations text,             -- pattern of the destinations that it is limited to
  hash         text    not null unique, -- SHA-256 of the secret
  added_at     bigint  not null,
  added_by     text    not null,
  expires_at   bigint,
  last_used_at bigint            -- begin of an hour
);

-- Access entries that operators have added by command.
create table access_entry (
  subject    text   not null check (subject in ('client', 'sender', 'recipient')),
  key        text   collate "C" not null, -- in lower case
  action     text   not null,
  added_at   bigint not null,
  added_by   text   not null,
  expires_at bigint,
  primary key (subject, key)
);

-- MTA-STS policies of recipient domains (RFC 8461).
create table sts_policy (
  domain     text   collate "C" primary key,
  id         text   not null,
  mode       text   not null check (mode in ('enforce', 'testing', 'none')),
  mx         text   not null, -- JSON list of patterns
  text       text   not null, -- as fetched
  fetched_at bigint not null,
  expires_at bigint not null,
  used_at    bigint not null,
  failed_at  bigint,
  failure    text
);

-- Destinations whose mail exchangers belong to a provider.
create table provider_member (
  destination text collate "C" primary key,
  provider    text,           -- null when it left its provider
  keys        bigint not null, -- number of the change
  moves_from  smallint[] not null default '{}' -- shards that may still have mail of the destination
);
create index provider_member_keys on provider_member (keys);
create index provider_member_moving on provider_member (destination) where moves_from <> '{}';

-- Providers with effects of reply rules.
create table provider (
  name    text collate "C" primary key,
  effects text not null -- JSON
);

-- Sessions of TLS by day, for reports to domains (RFC 8460). Counts are those of one process (source), and only grow.
create table tls_result (
  day          text collate "C" not null, -- UTC, 2026-11-23
  domain       text collate "C" not null, -- whose TLSRPT record asks for the report
  source       text collate "C" not null,
  key          text collate "C" not null, -- digest of the columns from policy to reason
  policy       text not null, -- JSON object as in the report
  type         text not null, -- success, or the type of failure
  mx           text not null,
  receiving_ip text not null,
  sending_ip   text not null,
  reason       text not null,
  sessions     bigint not null,
  primary key (day, domain, source, key)
);

-- Reports about a day. A claim keeps other nodes from the same report.
create table tls_report (
  day           text collate "C" not null,
  domain        text collate "C" not null,
  claimed_until bigint not null,
  ended         text check (ended in ('sent', 'unwanted')),
  primary key (day, domain)
);

-- Events that programs subscribe to, written with what happened. An event has a number after its commit, so that no event with a lower
-- number is committed later. Numbers have no gaps.
create table event (
  id   bigint generated always as identity, -- order of writing
  seq  bigint,          -- null until it is numbered
  at   bigint not null,
  type text   not null,
  data text   not null  -- JSON
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
create index event_unnumbered on event (id) where seq is null;
create unique index event_seq on event (seq) where seq is not null;

create table outbox (
  one   boolean primary key default true check (one),
  epoch bigint  not null default floor(random() * 2176782336), -- part of the ids of events, so that another queue has other ids
  last  bigint  not null default 0 -- the last number
);

-- The last transaction of each node that has no trace but its events, by which the node knows whether it was committed.
create table marked_batch (
  node   bigint primary key,
  number bigint not null
);

create table subscription (
  name        text   collate "C" primary key,
  owner       text   not null check (owner in ('configuration', 'command')),
  settings    text   not null, -- JSON: target, filter and secrets
  configured_by text[] collate "C" not null default '{}', -- names of the nodes whose configuration has it
  created_at  bigint not null,
  created_by  text   not null,
  cursor      bigint not null, -- number of the last event that is done
  state       text   not null default 'active' check (state in ('active', 'disabled')),
  why         text,            -- why it is disabled
  tries       int    not null default 0, -- failed tries of the next event
  refusals    int    not null default 0, -- refusals among them of the event alone
  due_at      bigint,          -- time of the next try
  last_answer text,            -- JSON
  losses      text   not null default '[]' -- JSON: deleted events of which it was not told yet
);

-- Events that the target of a subscription refused.
create table parked (
  subscription text   collate "C" not null,
  seq          bigint not null,
  tries        int    not null,
  parked_at    bigint not null,
  due_at       bigint, -- time of the next try, after an operator asked for one
  answer       text   not null,
  primary key (subscription, seq)
);
create index parked_due on parked (subscription, due_at, seq) where due_at is not null;

-- Recalls of claimed mail: a node that has changed messages asks those that lease mail of them, or all nodes after a suspension.
create table recall (
  asker       bigint   not null, -- the node that asks
  number      int      not null, -- counted by that node
  node        bigint   not null, -- the node that is asked
  messages    bigint[] not null,
  destination text collate "C",  -- a destination that was suspended; null for none
  rests       boolean  not null, -- true when nodes that gave mail back make no claims for a moment
  answer      text,              -- what the node has given back, as JSON
  primary key (node, asker, number)
);

-- Questions of a command to a node, and the answers.
create table ask (
  id     bigint generated always as identity primary key,
  node   bigint not null,
  what   text   not null,
  answer text
);
create index ask_node on ask (node);

-- Recipients by what happened to them, per minute (`at` is its begin) and node. The rows with `at` 0 are the sums of all minutes
-- before those kept. A minute has several parts, so that a row has few versions while a session holds an old snapshot.
create table traffic (
  at        bigint not null,
  node      bigint not null,
  part      int    not null,
  accepted  bigint not null,
  delivered bigint not null,
  deferred  bigint not null,
  bounced   bigint not null,
  expired   bigint not null,
  deleted   bigint not null,
  primary key (at, node, part)
);

-- Moves of messages between queues, see src/store/move-store.ts.

-- Messages that a move has taken out of this queue. Their contents stay in chunk until the other queue has them.
create table moving (
  message        bigint  primary key,
  content_id     bigint  not null, -- as in message
  shares_content boolean not null, -- as in message
  target         text    not null, -- identity and name of the other queue, as JSON
  record         text    not null  -- the message with recipients and attempts, as JSON
);
create index moving_sharing on moving (content_id) where shares_content;

-- Messages that other queues have sent to this one. A row is kept after the message was added to the queue, so that a repeated
-- move does not add it again.
create table origin (
  id          bigint primary key, -- id of the message here
  source      text   not null,    -- identity of the other queue
  message     bigint not null,    -- its id there
  created_at  bigint not null,    -- its time of creation there
  queue_id    text   not null,    -- its queue id here
  record      text,               -- as in moving; null when the message is in the queue
  admitted_at bigint,             -- when it was added to the queue
  check ((record is null) = (admitted_at is not null))
);
create unique index origin_message on origin (source, message, created_at);
create index origin_arriving on origin (source, id) where record is not null;
create index origin_admitted on origin (admitted_at) where admitted_at is not null;

-- Ranges of message ids that no node gets, for messages of another queue that keep their ids.
create table kept_ids (
  source text   not null, -- identity of the other queue
  first  bigint not null,
  last   bigint not null,
  primary key (source, first)
);

-- The last rows of history and audit that came from another queue.
create table records_taken (
  source  text   primary key,
  history bigint not null,
  audit   bigint not null
);

-- The node that alone moves messages from another queue into this one, by the identity of that queue; with '', out of this one.
create table mover (
  source text   primary key,
  node   bigint not null
);

-- The queue to which this one was moved as a whole. The table message then has the constraint queue_moved, which refuses every row.
create table moved_to (
  name text primary key
);

insert into queue (version, oldest_known, shards) values (1, 1, 256);
insert into shard (id) select generate_series(0, 255);
insert into outbox default values;
