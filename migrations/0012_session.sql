-- Dialogues with hosts, to which attempts refer; see src/store/records/stored-session.ts.
create table session (
  id          text    not null primary key,
  at          integer not null,
  destination text    not null,
  source      text,             -- local address; null where no connection was made
  host        text    not null,
  bytes       blob    not null  -- deflate
) strict;
create index session_at on session (at, id, length(bytes)); -- the sum of all lengths is read from it

alter table attempt add column session_id text; -- null without a dialogue, which may be deleted before the attempt
