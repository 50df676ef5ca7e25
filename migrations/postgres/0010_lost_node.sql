-- Nodes that others have taken over, by node_name, until one of the name joins or an operator removes the entry.
create table lost_node (
  name       text   collate "C" primary key,
  node       bigint not null,
  program    text   not null,
  joined_at  timestamptz not null,
  seen_at    timestamptz not null, -- the last beat
  lost_at    timestamptz not null,
  taker      text   not null,      -- node_name of the node that took its mail over
  shards     int    not null,
  recipients int    not null       -- that it had leased
);
