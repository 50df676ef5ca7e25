/** Counts the statements that SQLite runs in this process, from the begin of a test on. */
import Database from 'better-sqlite3'
import { afterEach, beforeEach, vi } from 'vitest'

/** Counts in each test of the file that calls it. Returns a function that returns the number. */
export function countedStatements(): () => number {
  let statements = 0
  beforeEach(() => {
    const db = new Database(':memory:')
    const made = Object.getPrototypeOf(db.prepare('select 1')) as Record<'run' | 'get' | 'all', (...values: unknown[]) => unknown>
    db.close()
    for (const name of ['run', 'get', 'all'] as const) {
      const call = made[name]
      vi.spyOn(made, name).mockImplementation(function (this: unknown, ...values) {
        statements++
        return call.apply(this, values)
      })
    }
  })
  afterEach(() => vi.restoreAllMocks())
  return () => statements
}
