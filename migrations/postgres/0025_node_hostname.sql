-- Parameter myhostname of a node; empty for a command, and for a node that does not know this migration.
alter table node add column hostname text not null default '';
