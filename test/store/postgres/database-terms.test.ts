import { expect, test } from 'vitest'
import { refusal, type DatabaseFacts } from '../../../src/store/postgres/session/database-terms.ts'

const SAFE: DatabaseFacts = {
  version: 'PostgreSQL 18.4 on x86_64-pc-linux-gnu, compiled by gcc',
  versionNumber: 180_004,
  encoding: 'UTF8',
  fsync: 'on',
  fullPageWrites: 'on',
  synchronousCommit: 'on',
  standbyNames: 'ANY 1 (a, b)',
  isolation: 'read committed',
  backends: [7, 7],
  missing: [],
}

test('a server with a synchronous standby holds a queue on both terms', () => {
  expect(refusal(SAFE, 'replicated')).toBeNull()
  expect(refusal(SAFE, 'primary')).toBeNull()
  expect(refusal({ ...SAFE, synchronousCommit: 'remote_apply' }, 'replicated')).toBeNull()
})

test('a server without a standby holds one on the term primary only', () => {
  expect(refusal({ ...SAFE, standbyNames: '' }, 'primary')).toBeNull()
  expect(refusal({ ...SAFE, standbyNames: '' }, 'replicated')).toMatch(
    /^synchronous_standby_names .* queue_database_durability = "primary"/,
  )
})

test.each<[string, Partial<DatabaseFacts>, RegExp]>([
  ['another engine', { version: 'CockroachDB CCL v23.1.11' }, /^it is CockroachDB: use PostgreSQL 15/],
  ['an old version', { version: 'PostgreSQL 14.9 on x86_64', versionNumber: 140_009 }, /^it is PostgreSQL 14.9: use PostgreSQL 15/],
  ['another encoding', { encoding: 'SQL_ASCII' }, /^server_encoding is SQL_ASCII/],
  ['another isolation', { isolation: 'serializable' }, /^default_transaction_isolation is serializable/],
  ['fsync off', { fsync: 'off' }, /^fsync is off.*set fsync = on/],
  ['full_page_writes off', { fullPageWrites: 'off' }, /^full_page_writes is off.*set full_page_writes = on/],
  ['commits before the flush', { synchronousCommit: 'off' }, /^synchronous_commit is off.*set it to on/],
  ['commits before the flush of the standby', { synchronousCommit: 'remote_write' }, /^synchronous_commit is remote_write/],
  ['commits without the standby', { synchronousCommit: 'local' }, /^synchronous_commit is local/],
  ['settings that did not arrive', { missing: ['jit'] }, /^the session settings jit did not arrive.*pooler/],
  ['two sessions behind one connection', { backends: [7, 8] }, /pg_backend_pid.*pooler/],
])('%s is refused with its remedy', (_, facts, text) => expect(refusal({ ...SAFE, ...facts }, 'primary')).toMatch(text))
