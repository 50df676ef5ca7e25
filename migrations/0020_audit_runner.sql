-- The owner of the queue that carries out an operation, and its node_name, as on a queue with several nodes (src/store/records/audit-records.ts).
alter table audit add column node text; -- always null
alter table audit add column runner integer; -- null unless it is running
