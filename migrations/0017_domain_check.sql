-- Checks of domains that were ordered, see src/store/records/domain-check.ts.
create table domain_check (
  domain     text not null,
  sender     text not null,    -- domain of the senders
  ordered_by text not null,
  node       text not null,
  began_at   integer not null,
  ended_at   integer,          -- null while the check goes on
  failure    text,             -- why there is no new report
  report     text not null,    -- the last report as JSON; null before the first one
  primary key (domain, sender)
) strict, without rowid;
