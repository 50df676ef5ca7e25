-- Id of the HTTP request that ordered an action (src/store/records/audit-log.ts).
alter table audit add column request_id text;
