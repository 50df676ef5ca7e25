/** Every column that can hold an address is either erased, or named here with the reason why it stays. */
import { readFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { resources } from '../../../src/system/packaged-files.ts'
import { ERASED_TABLES, KEPT_CONTENT, type ErasedTable } from '../../../src/store/erasure/erased-tables.ts'
import { SEARCH_TABLES } from '../../../src/store/sqlite/search/search-queries.ts'

/** Tables that stay as they are. */
const LIVE = 'mail in the queue, in the trash, or on the way to or from another queue'
const CODES = 'names, codes and counts that deferd makes, or names of domains, nodes and programs'
const SETTINGS = 'settings that operators have made, until they remove them'
const ERASURE = 'the erasure itself, whose row is deleted at its end'
const SPANS = 'counts by sender or client, deleted when their span of at most 31 days has passed'
const SECONDS = 'messages between processes, deleted within seconds'

const WHOLE: Readonly<Record<string, string>> = {
  message: LIVE,
  recipient: LIVE,
  attempt: LIVE,
  chunk: LIVE,
  moving: LIVE,
  origin: LIVE,
  share_usage: LIVE,
  quota_count: SPANS,
  maildrop_file: CODES,
  operated: CODES,
  meta: CODES,
  series: CODES,
  series_delta: CODES,
  queue_mark: CODES,
  records_taken: CODES,
  kept_ids: CODES,
  moved_to: CODES,
  provider_member: CODES,
  provider: CODES,
  domain_check: CODES,
  suppression_stop: CODES,
  suppression_change: CODES,
  sts_policy: CODES,
  tls_result: CODES,
  tls_report: CODES,
  queue: CODES,
  node: CODES,
  lost_node: CODES,
  mover: CODES,
  access_token: SETTINGS,
  access_entry: SETTINGS,
  class: SETTINGS,
  oauth_token: SETTINGS,
  erasure: ERASURE,
  erasure_key: ERASURE,
  arrival: SECONDS,
  recall: SECONDS,
  ask: SECONDS,
}

/** Columns of erased tables that stay: names, codes, and times as texts. */
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  kept_content: ['headers'],
  session: ['id', 'destination', 'source', 'host'],
  event: ['type'],
  parked: ['subscription'],
  // The settings are those of an operator.
  subscription: ['name', 'owner', 'settings', 'configured_by', 'created_by', 'state', 'losses'],
  // The id of a request has no @.
  audit: ['node', 'who', 'action', 'state', 'request_id'],
  // The key is chosen by a client, and the digest of its request is one way.
  kept_request: ['key', 'digest'],
  destination: ['name', 'suspended_by'],
  provider_suspension: ['provider', 'by'],
  // A refused address stays on the list until it is removed.
  suppression: ['scope', 'address', 'reason', 'destination', 'added_by', 'strikes'],
  schedule_run: ['name', 'ordered_by', 'node', 'outcome', 'file', 'identity'],
}

const TYPES = /^(?:text|blob|bytea|json|tsvector)/i

function columnsOfSqlite(): ReadonlyMap<string, readonly string[]> {
  const db = new Database(':memory:')
  for (const [, sql] of resources('migrations')) db.exec(sql)
  const tables = db.prepare<[], string>(
    `select name from sqlite_schema where type = 'table' and sql not like '%fts5%' and name not like 'search\\_%' escape '\\'`,
  )
  const columnsOf = db.prepare<string[], { name: string; type: string }>('select name, type from pragma_table_info(?)')
  const found = new Map(
    tables
      .pluck()
      .all()
      .map((table) => [table, columnsOf.all(table).flatMap(({ name, type }) => (TYPES.test(type) ? [name] : []))] as const),
  )
  db.close()
  return found
}

/** Reads the migrations, so that the test needs no database. */
function columnsOfPostgres(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  const add = (table: string, line: string): void => {
    const [, name = '', type = ''] = /^\s*"?(\w+)"?\s+(\w+)/.exec(line) ?? []
    if (TYPES.test(type)) found.set(table, [...(found.get(table) ?? []), name])
  }
  for (const [, sql] of resources('migrations/postgres')) {
    for (const [, table = '', body = ''] of sql.matchAll(/^create (?:unlogged )?table (\w+) \(\n(.*?)\n\)/gms)) {
      if (!found.has(table)) found.set(table, [])
      for (const line of body.split('\n')) add(table, line)
    }
    for (const [, table = '', rest = ''] of sql.matchAll(/^alter table (\w+)\s+(.*?);/gms))
      for (const [, line = ''] of rest.matchAll(/add column ([^,]*)/g)) add(table, line)
  }
  return found
}

/** Columns that nothing tells about. */
function unknown(columns: ReadonlyMap<string, readonly string[]>, erased: readonly ErasedTable[]): readonly string[] {
  const changed = new Map(erased.map((table) => [table.name, Object.keys(table.columns)]))
  return [...columns].flatMap(([table, names]) =>
    names
      .filter((name) => !(table in WHOLE) && !(COLUMNS[table] ?? []).includes(name) && changed.get(table)?.includes(name) !== true)
      .map((name) => `${table}.${name}`),
  )
}

describe.each([
  ['SQLite', columnsOfSqlite(), ERASED_TABLES.sqlite, []],
  // Entries of the index are erased with the record of the history.
  ['PostgreSQL', columnsOfPostgres(), ERASED_TABLES.postgres, ['search.terms']],
] as readonly (readonly [string, ReadonlyMap<string, readonly string[]>, readonly ErasedTable[], readonly string[]])[])(
  '%s',
  (_, columns, erased, withHistory) => {
    test('an erasure knows each column with addresses, or a reason why it has none', () => {
      expect(columns.size).toBeGreaterThan(30)
      expect(unknown(columns, erased)).toEqual(withHistory)
    })

    test('all columns that an erasure changes exist', () => {
      const missing = erased.flatMap(({ name, key, columns: changed }) =>
        Object.keys(changed)
          .filter((column) => columns.get(name)?.includes(column) !== true || key.includes(column))
          .map((column) => `${name}.${column}`),
      )
      expect(missing).toEqual([])
      expect(columns.has(KEPT_CONTENT)).toBe(true)
    })
  },
)

test('docs/erasure.md names each table that an erasure changes', () => {
  const page = readFileSync(new URL('../../../docs/erasure.md', import.meta.url), 'utf8')
  const [, section = ''] = /^## What is changed\n(.*?)\nRows of /ms.exec(page) ?? []
  const named = section.split('\n').flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, table]) => table))
  const changed = [...ERASED_TABLES.sqlite, ...ERASED_TABLES.postgres].map(({ name }) => name)
  expect(new Set(named)).toEqual(new Set([...changed, KEPT_CONTENT, ...SEARCH_TABLES, 'search']))
})
