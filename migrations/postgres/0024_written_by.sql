-- Version of the deferd that opened the queue last, as a number (src/system/version.ts); null before the first one that recorded it.
alter table queue add column written_by int;
