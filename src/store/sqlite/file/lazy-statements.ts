/**
 * Statements that are compiled at their first use: to compile all statements of a store takes 10 ms of a processor, and few processes use
 * half of them. The error of a wrong text is thrown at the first use too.
 */
import type { ColumnDefinition, Database, RunResult, Statement } from 'better-sqlite3'

type Compiled = Statement

/** Makes `prepare` of a connection return such statements. */
export function withLazyStatements(db: Database): Database {
  const compile = db.prepare.bind(db)
  return Object.assign(db, { prepare: (source: string) => new LazyStatement(db, source, () => compile(source)) })
}

class LazyStatement implements Compiled {
  readonly database: Database
  readonly source: string
  #compile: () => Compiled
  #compiled: Compiled | null = null

  constructor(database: Database, source: string, compile: () => Compiled) {
    this.database = database
    this.source = source
    this.#compile = compile
  }

  get #statement(): Compiled {
    return (this.#compiled ??= this.#compile())
  }

  #set(change: (statement: Compiled) => Compiled): this {
    const compile = this.#compile
    this.#compile = () => change(compile())
    this.#compiled = null
    return this
  }

  pluck(on = true): this {
    return this.#set((statement) => statement.pluck(on))
  }
  expand(on = true): this {
    return this.#set((statement) => statement.expand(on))
  }
  raw(on = true): this {
    return this.#set((statement) => statement.raw(on))
  }
  safeIntegers(on = true): this {
    return this.#set((statement) => statement.safeIntegers(on))
  }
  bind(...values: unknown[]): this {
    return this.#set((statement) => statement.bind(...values))
  }

  run(...values: unknown[]): RunResult {
    return this.#statement.run(...values)
  }
  get(...values: unknown[]): unknown {
    return this.#statement.get(...values)
  }
  all(...values: unknown[]): unknown[] {
    return this.#statement.all(...values)
  }
  iterate(...values: unknown[]): IterableIterator<unknown> {
    return this.#statement.iterate(...values)
  }
  columns(): ColumnDefinition[] {
    return this.#statement.columns()
  }
  get reader(): boolean {
    return this.#statement.reader
  }
  get readonly(): boolean {
    return this.#statement.readonly
  }
  get busy(): boolean {
    return this.#statement.busy
  }
}
