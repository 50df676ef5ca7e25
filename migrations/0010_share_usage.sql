-- Live mail by share, see src/store/share-counts.ts; only while a limit of the queue is set.
create table share_usage (
  node     integer not null, -- 0: the queue has one owner
  share    text    not null, -- '' is mail without a share
  messages integer not null,
  bytes    integer not null,
  primary key (node, share)
) strict, without rowid;
