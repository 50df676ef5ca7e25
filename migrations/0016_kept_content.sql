-- Contents of messages that have left the queue and did not reach all recipients (returned_content_retention), see src/store/returned-mail.ts.
-- Their chunks stay in `chunk`.
create table kept_content (
  message    integer primary key,
  content_id integer not null,
  until      integer not null, -- time of its deletion
  size       integer not null, -- bytes of the content
  headers    text              -- header fields that were sent before the content
) strict, without rowid;

create index kept_content_until on kept_content (until);
create index kept_content_id on kept_content (content_id);
