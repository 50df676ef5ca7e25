/** Upgrades that are interrupted before a statement, as by a kill: an error in a transaction has the same end. */
import type Database from 'better-sqlite3'

export class Interrupted extends Error {}

/** Statements of a migration, which contain no semicolon but at their ends and within triggers. */
const statementsOf = (sql: string): readonly string[] =>
  sql.replaceAll(/--.*$/gm, '').match(/(?:[^;]*?\bbegin\b[^]*?\bend\s*|[^;]*);/gi) ?? []

/** The database, with an error before the n-th statement that changes it. */
export function interruptedAt(db: Database.Database, nth: number): { readonly db: Database.Database; readonly count: () => number } {
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
