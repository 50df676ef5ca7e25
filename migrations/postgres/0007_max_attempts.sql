-- Failed steps at which the client gives its message up, see src/mail/message.ts; null without a limit of its own.
alter table message add column max_attempts bigint;
