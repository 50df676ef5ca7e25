-- Classes of mail, see src/config/values/mail-classes.ts. `class` is null for mail without one, whose recipients have band 0.
alter table message add column class text;
create table class (
  name text    not null primary key,
  band integer not null unique -- of the recipients; stays with the name
) without rowid;
