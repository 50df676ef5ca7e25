-- Erasures that are under way, see src/store/records/erasure.ts. A row is deleted at the end.
create table erasure (
  operation bigint primary key, -- id in audit
  side      text   not null check (side in ('recipient', 'sender')),
  pattern   text   not null,
  before    bigint not null, -- mail that left the queue later stays
  stage     text,            -- where the next slice begins; null for the first
  after     text,
  until     bigint not null  -- the node that carries it out is gone when it has not extended this time
);

-- Keys of the texts that stand for erased addresses.
create table erasure_key (
  period bigint primary key, -- number of its year
  key    text   not null
);
