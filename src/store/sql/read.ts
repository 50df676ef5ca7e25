/**
 * Reads as generators, which yield statements and get their rows. The algorithms of the readers are written once so, for an engine that
 * answers at once and for one that answers later.
 */

/** A parameter of a statement. Arrays of PostgreSQL are buffers (postgres/session/arrays.ts). */
export type Parameter = string | number | boolean | Buffer | null

/** A statement with its parameters, `$1` being the first. */
export interface Query {
  readonly text: string
  readonly parameters: readonly Parameter[]
  /** True for rows as arrays, which take SQLite less time than objects. */
  readonly asArrays?: boolean
}

/** Adds a parameter to a statement, and returns its name there. */
export type Add = (value: Parameter) => string

export type Step = Query | { readonly each: readonly Read<unknown>[] } | { readonly together: Read<unknown> }
export type Read<T> = Generator<Step, T, unknown>

/** Writes a statement. */
export function statement(write: (add: Add) => string): Query {
  const parameters: Parameter[] = []
  const text = write((value) => `$${parameters.push(value)}`)
  return { text, parameters }
}

export function* rowsOf<Row extends object>(query: Query): Read<readonly Row[]> {
  return (yield query) as readonly Row[]
}

/** The first row of a statement. */
export function* rowOf<Row extends object>(query: Query): Read<Row | undefined> {
  return (yield* rowsOf<Row>(query))[0]
}

/** Makes reads that do not depend on each other, in PostgreSQL at the same time. */
export function* each<T extends readonly unknown[]>(reads: { readonly [N in keyof T]: Read<T[N]> }): Read<T> {
  return (yield { each: reads }) as T
}

/** Makes the statements of a read in one transaction in SQLite, which show one state of the queue. In PostgreSQL each has its own. */
export function* together<T>(read: Read<T>): Read<T> {
  return (yield { together: read }) as T
}

/** No rows, without a statement. */
// eslint-disable-next-line require-yield
export function* none(): Read<readonly never[]> {
  return []
}
