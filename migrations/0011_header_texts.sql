-- Subject and From for people, see src/mail/mime/shown-fields.ts; null without one, and with queue_index_headers = no.
alter table message add column subject text;
alter table message add column from_header text;
