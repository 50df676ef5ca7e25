-- Live mail by share, see src/store/share-counts.ts; only while a limit of the queue is set. A node changes rows of its own alone, so that nodes do
-- not wait for each other: the sum of all rows of a share is its use. Rows of the node 0 are those of nodes that are gone.
create table share_usage (
  node     bigint not null,
  share    text   collate "C" not null, -- '' is mail without a share
  messages bigint not null,
  bytes    bigint not null,
  primary key (node, share)
);

alter table queue
  add column shares_since   bigint, -- number of the change (keys) since which nodes count; null: they do not
  add column shares_counter bigint; -- the node that counts the mail from before; null when all is counted
