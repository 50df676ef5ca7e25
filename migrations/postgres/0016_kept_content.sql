-- Contents of messages that have left the queue and did not reach all recipients (returned_content_retention), see src/store/returned-mail.ts.
-- They are in `chunk`.
create table kept_content (
  message    bigint primary key,
  content_id bigint not null,
  until      bigint not null, -- time of its deletion
  size       bigint not null, -- bytes of the content
  headers    text             -- header fields that were sent before the content
);

create index kept_content_until on kept_content (until);
create index kept_content_id on kept_content (content_id);
