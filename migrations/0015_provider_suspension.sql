-- Suspensions of providers by operators, see src/store/records/provider-state.ts.
create table provider_suspension (
  provider text    not null primary key,
  by       text    not null,
  until    integer,
  reason   text
) strict, without rowid;
