-- Mail that is charged to quotas, see src/store/records/quota-count.ts. A node changes rows of its own alone, so that nodes do not wait for each
-- other: the sum of all rows of a slice is its use.
create table quota_count (
  quota      text   collate "C" not null,
  key        text   collate "C" not null, -- whose mail it is
  span       bigint not null, -- in ms
  begin      bigint not null, -- of the slice of the span
  node       bigint not null, -- owner that has accepted the mail
  messages   bigint not null,
  recipients bigint not null,
  until      bigint not null, -- time from which the slice is in no window
  primary key (quota, key, span, begin, node)
);
create index quota_count_until on quota_count (until);
