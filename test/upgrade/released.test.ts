/** Migrations of released versions stay as they are: queues of those versions have applied them. */
import { describe, expect, test } from 'vitest'
import { VERSION } from '../../src/system/version.ts'
import { brokenPromises, checksumsOf, frozenMigrations, presentMigrations, releases } from '../../scripts/release/frozen-migrations.ts'

test.each(releases())('the migrations of %s are as they were released', (version) => {
  expect(brokenPromises(version, frozenMigrations(version), presentMigrations())).toEqual([])
})

test('the version of package.json has a list', () => {
  expect(releases()).toContain(VERSION)
})

describe('of a release with two migrations', () => {
  const two = new Map([
    ['0001_queue.sql', 'create table message (id int);'],
    ['0002_class.sql', 'alter table message add column class text;'],
  ])
  const released = checksumsOf({ sqlite: two, postgres: two })
  const changed = (...changes: readonly (readonly [file: string, sql: string | null])[]) => {
    const sqlite = new Map(two)
    for (const [file, sql] of changes)
      if (sql === null) sqlite.delete(file)
      else sqlite.set(file, sql)
    return brokenPromises('1.0.0', released, { sqlite, postgres: two })
  }

  test('a third migration, a comment and another layout break nothing', () => {
    expect(changed(['0003_more.sql', 'select 1'], ['0001_queue.sql', '-- The queue.\ncreate table message\n  (id int);'])).toEqual([])
  })

  test.each([
    ['a changed one', ['0001_queue.sql', 'create table message (id bigint);'], /0001_queue\.sql of 1\.0\.0 was changed/],
    ['a removed one', ['0002_class.sql', null], /0002_class\.sql of 1\.0\.0 is gone/],
    ['a new one with a former number', ['0002_class.finish.sql', 'drop table x'], /0002_class\.finish\.sql is not in 1\.0\.0.*above 0002/],
  ] as const)('%s is named', (_, change, sentence) => {
    expect(changed(change)).toEqual([expect.stringMatching(sentence)])
  })
})
