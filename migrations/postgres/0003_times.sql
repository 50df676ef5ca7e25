-- Times that clients name for their messages, see src/mail/message.ts. All are null for other mail, which has no entry in the indexes.
alter table message
  add column not_before   bigint,  -- no delivery begins before
  add column scheduled    boolean, -- true until not_before has come; null otherwise
  add column hold_request text,    -- 'for;3600', 'until;2026-11-24T08:00:00Z'
  add column expires      bigint;  -- time at which the client gives it up

create index message_scheduled on message (not_before) where scheduled;
create index message_envid on message (envid) where envid is not null;
