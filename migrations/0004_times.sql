-- Times that clients name for their messages, see src/mail/message.ts. All are null for other mail, which has no entry in the indexes.
alter table message add column not_before integer;   -- no delivery begins before
alter table message add column scheduled integer check (scheduled = 1); -- 1 until not_before has come; null otherwise
alter table message add column hold_request text;    -- 'for;3600', 'until;2026-11-24T08:00:00Z'
alter table message add column expires integer;      -- time at which the client gives it up

create index message_scheduled on message (not_before) where scheduled = 1;
create index message_envid on message (envid) where envid is not null;
