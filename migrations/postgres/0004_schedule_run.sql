-- Runs of the [schedule.NAME] tables, see src/store/records/schedule-run.ts.
create table schedule_run (
  name       text   collate "C" not null, -- of the table
  planned    bigint not null, -- time of the calendar, by the wall clock
  ordered_by text,            -- null for the calendar
  node       text   not null,
  began_at   bigint not null,
  until      bigint not null, -- the node is gone when it has not extended this time
  ended_at   bigint,          -- null while the run goes on
  outcome    text,
  text       text   not null,
  file       text,            -- that the run wrote and that still counts for keep
  identity   text,
  primary key (name, planned),
  check (outcome in ('done', 'failed')),
  check ((ended_at is null) = (outcome is null))
);

-- One run of a table at once.
create unique index schedule_run_going_on on schedule_run (name) where ended_at is null;
