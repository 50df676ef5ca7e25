-- Suspensions of providers by operators, see src/store/records/provider-state.ts.
create table provider_suspension (
  provider text   collate "C" primary key,
  by       text   not null,
  until    bigint,
  reason   text
);
