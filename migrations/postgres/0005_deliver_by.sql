-- Deliver-by time of BY (RFC 2852), see src/mail/message-times.ts. Null for other mail.
alter table message
  add column deliver_by bigint,
  add column by_mode    text; -- 'R', 'N', 'RT', 'NT'
