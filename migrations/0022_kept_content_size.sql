-- The sum of the sizes is read from this index, without the header fields.
drop index kept_content_until;
create index kept_content_until on kept_content (until, message, size);
