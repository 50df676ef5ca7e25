-- Moves of messages between queues, see src/store/move-store.ts. No table with row numbers has as many columns as another one, because
-- a salvage recognizes rows by that number.

-- Messages that a move has taken out of this queue. Their contents stay in chunk until the other queue has them.
create table moving (
  message        integer primary key,
  shares_content integer not null check (shares_content in (0, 1)), -- as in message
  target         text    not null, -- identity and name of the other queue, as JSON
  record         text    not null, -- the message with recipients and attempts, as JSON
  crc            integer not null  -- CRC-32 of the record
) strict;

create index moving_content on moving (json_extract(record, '$.message.contentId'));

-- Messages that other queues have sent to this one. A row is kept after the message was added to the queue, so that a repeated
-- move does not add it again.
create table origin (
  id          integer primary key, -- id of the message here
  source      text    not null,    -- identity of the other queue
  message     integer not null,    -- its id there
  created_at  integer not null,    -- its time of creation there
  queue_id    text    not null,    -- its queue id here
  record      text,    -- as in moving; null when the message is in the queue
  crc         integer,
  admitted_at integer, -- when it was added to the queue
  check ((record is null) = (crc is null) and (record is null) = (admitted_at is not null))
) strict;

create unique index origin_message on origin (source, message, created_at);
create index origin_arriving on origin (source, id) where record is not null;
create index origin_admitted on origin (admitted_at) where admitted_at is not null;

-- The last rows of history and audit that came from another queue.
create table records_taken (
  source  text    primary key,
  history integer not null,
  audit   integer not null
) strict, without rowid;

-- The queue to which this one was moved as a whole.
create table moved_to (
  name text primary key
) strict, without rowid;
