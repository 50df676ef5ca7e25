-- Dialogues with hosts, to which attempts refer; see src/store/records/stored-session.ts.
create table session (
  id          text   collate "C" primary key,
  at          bigint not null,
  destination text   collate "C" not null,
  source      text,            -- local address; null where no connection was made
  host        text   not null,
  bytes       bytea  not null  -- deflate
);
create index session_at on session (at, id, length(bytes)); -- the sum of all lengths is read from it

alter table attempt add column session_id text; -- null without a dialogue, which may be deleted before the attempt
