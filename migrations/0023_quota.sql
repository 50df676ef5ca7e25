-- Mail that is charged to quotas, see src/store/records/quota-count.ts.
create table quota_count (
  quota      text    not null,
  key        text    not null, -- whose mail it is
  span       integer not null, -- in ms
  begin      integer not null, -- of the slice of the span
  node       integer not null, -- owner that has accepted the mail
  messages   integer not null,
  recipients integer not null,
  until      integer not null, -- time from which the slice is in no window
  primary key (quota, key, span, begin, node)
) strict, without rowid;
create index quota_count_until on quota_count (until);
