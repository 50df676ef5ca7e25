import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { currentVersion, migrate, versionOf } from '../../../src/store/sqlite/file/migrations.ts'
import { assertCompatible } from '../../../src/store/sqlite/file/schema-differences.ts'

class Interrupted extends Error {}

/** Statements of a migration, which contain no semicolon but at their ends and within triggers. */
const statementsOf = (sql: string): readonly string[] =>
  sql.replaceAll(/--.*$/gm, '').match(/(?:[^;]*?\bbegin\b[^]*?\bend\s*|[^;]*);/gi) ?? []

/** The database, with an error before the n-th statement that changes it. */
function interruptedAt(db: Database.Database, nth: number): { readonly db: Database.Database; readonly count: () => number } {
  let count = 0
  const step = () => {
    if (++count === nth) throw new Interrupted()
  }
  const exec = (sql: string) => {
    for (const statement of statementsOf(sql)) {
      step()
      db.exec(statement)
    }
    return db
  }
  const pragma = (text: string, options?: Database.PragmaOptions) => {
    if (text.includes('=')) step()
    return db.pragma(text, options)
  }
  const proxy = new Proxy(db, {
    get(target, name) {
      if (name === 'exec') return exec
      if (name === 'pragma') return pragma
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
  return { db: proxy, count: () => count }
}

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
