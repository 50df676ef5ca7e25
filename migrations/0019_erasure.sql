-- Erasures that are under way, see src/store/records/erasure.ts. A row is deleted at the end.
create table erasure (
  operation integer not null primary key, -- id in audit
  side      text    not null check (side = 'recipient' or side = 'sender'),
  pattern   text    not null,
  before    integer not null, -- mail that left the queue later stays
  stage     text,             -- where the next slice begins; null for the first
  after     text,
  until     integer not null  -- the process that carries it out is gone when it has not extended this time
) strict, without rowid;

-- Keys of the texts that stand for erased addresses.
create table erasure_key (
  period integer not null primary key, -- number of its year
  key    text    not null
) strict, without rowid;
