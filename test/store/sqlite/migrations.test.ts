import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { currentVersion, migrate, versionOf } from '../../../src/store/sqlite/file/migrations.ts'
import { Interrupted, interruptedAt } from '../../support/interrupted-migration.ts'
import { assertCompatible } from '../../../src/store/sqlite/file/schema-differences.ts'

const tables = (db: Database.Database) => db.prepare('select type, name from sqlite_schema order by name').all()

test('an upgrade interrupted before any of its statements leaves the queue as it was, and the next one completes it', () => {
  const complete = new Database(':memory:')
  const { db, count } = interruptedAt(complete, Infinity)
  migrate(db)
  const statements = count()
  expect(statements).toBeGreaterThan(10)
  for (let nth = 1; nth <= statements; nth++) {
    const queue = new Database(':memory:')
    expect(() => migrate(interruptedAt(queue, nth).db)).toThrow(Interrupted)
    expect([versionOf(queue), tables(queue)]).toEqual([0, []])
    expect(() => assertCompatible(queue, 'queue.db')).not.toThrow()
    migrate(queue)
    expect([versionOf(queue), tables(queue)]).toEqual([currentVersion(), tables(complete)])
    queue.close()
  }
  complete.close()
})
