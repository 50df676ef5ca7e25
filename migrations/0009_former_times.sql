-- Times of a message before an operation gave it others, as JSON, see src/store/former-times.ts; null after other operations.
alter table operated add column former text;
