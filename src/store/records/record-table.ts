/**
 * Tables of small records, each described once for all engines: its columns, its key, and its calls. A call is statements in SQL that
 * PostgreSQL and SQLite share, with the same change of a map for the queue in memory. Each statement is right by itself when another node
 * runs one at the same time.
 */
import type { OwnerId } from '../../mail/message.ts'

/** Values that the engine knows: the number of the owner that makes the call, and its `node_name` (null on a queue with one owner). */
export const OWNER: unique symbol = Symbol('owner')
export const NODE_NAME: unique symbol = Symbol('node_name')

/** An owner that makes calls. */
export interface Caller {
  readonly owner: OwnerId
  readonly name: string | null
}

type Value = string | number | boolean | Uint8Array | null

export type Values = Readonly<Record<string, Value | typeof OWNER | typeof NODE_NAME>>

export const valueFor = ({ owner, name }: Caller, value: Values[string]): Value =>
  value === OWNER ? owner : value === NODE_NAME ? name : value

/**
 * A statement. Its parameters are `:name`; SQLite has `max` in place of `greatest`, and `in (…)` in place of `= any (array(…))`, by which
 * PostgreSQL uses an index whatever its statistics; PostgreSQL has `json_array_elements` in place of `json_each`.
 * `matches(column, :name)` compares with a pattern of LIKE, without regard to the case of ASCII letters.
 */
export interface Statement {
  readonly text: string
  readonly values: Values
}

/** Condition `matches` as an engine spells it. */
export const spelledMatches = (text: string, spell: (column: string, pattern: string) => string): string =>
  text.replaceAll(/matches\((\w+), (:\w+)\)/g, (_, column: string, pattern: string) => spell(column, pattern))

/** Rows of a queue in memory, by table and key. */
export interface HeldRows {
  readonly tables: Map<string, Map<string, object>>
  readonly caller: Caller
}

/**
 * A call, which is one transaction:
 * - `read`: reads only;
 * - `write`: has the same effect twice as once, and no answer;
 * - `once`: has an effect that a repetition has not, and answers with a value other than false.
 */
export interface RecordCall<A extends readonly unknown[] = readonly unknown[], R = unknown> {
  readonly kind: 'read' | 'write' | 'once'
  /** Rows that the call changes. Two calls with the same one do not share a transaction of PostgreSQL. */
  key(...args: A): string
  statements(...args: A): readonly Statement[]
  /** The answer, from the rows of the last statement. */
  answer(rows: readonly object[]): R
  held(rows: HeldRows, ...args: A): R
  /** `reserve`: the call may use the reserved space of a full disk (methods.ts). */
  readonly room?: 'reserve'
  /** The kind of record (Arrivals) by which the owner of a provider is told of the argument, on a queue of several nodes. */
  readonly tells?: 'providers'
}

export interface ReadCall<A extends readonly unknown[] = readonly unknown[], R = unknown> extends RecordCall<A, R> {
  readonly kind: 'read'
}

/** The methods of calls. */
export type MethodsOf<C> = { -readonly [M in keyof C]: C[M] extends RecordCall<infer A, infer R> ? (...args: A) => Promise<R> : never }

/** The methods of those calls that read only. */
export type ReadsOf<C> = Pick<MethodsOf<C>, { [M in keyof C]: C[M] extends { readonly kind: 'read' } ? M : never }[keyof C]>

/** A condition in SQL, on `kept`, `excluded` and the parameters, and the same one in memory. */
interface Rule<Row, New> {
  readonly sql: string
  readonly held: (kept: Row, row: New) => boolean
}

interface Upsert<Row, New> {
  /** Columns that replace those of a row with the same key; all when absent. */
  readonly only?: readonly (keyof Row & string)[]
  /** Columns that only grow. */
  readonly greatest?: readonly (keyof Row & string)[]
  /** Condition for the change of a row with the same key. */
  readonly when?: Rule<Row, New>
}

interface OwnCall<A extends readonly unknown[], R> {
  readonly statements: (...args: A) => readonly Statement[]
  readonly held: (rows: HeldRows, ...args: A) => R
}

/** `json` is stored as text, `flag` as 0 or 1 where there are no booleans. */
type Codec = 'text' | 'number' | 'flag' | 'json' | 'bytes'

type Keyed<Row, Key extends keyof Row> = Partial<Row> & Pick<Row, Key>

const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
/** A column. Some names are words of SQL. */
export const column = (name: string): string => `"${snake(name)}"`
const parameters = (names: readonly string[]): string => names.map((name) => `:${name}`).join(', ')

/** Order of texts by their octets in UTF-8, as in the databases. */
export const compare = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

export class RecordTable<Row extends object, Key extends keyof Row & string> {
  readonly #name: string
  readonly #codecs: Readonly<Record<keyof Row & string, Codec>>
  readonly #columns: readonly (keyof Row & string)[]
  readonly #key: readonly Key[]
  readonly #unique: readonly (keyof Row & string)[]

  /** `unique` has further columns with a unique index. */
  constructor(
    name: string,
    codecs: Readonly<Record<keyof Row & string, Codec>>,
    { key, unique = [] }: { readonly key: readonly Key[]; readonly unique?: readonly (keyof Row & string)[] },
  ) {
    this.#name = name
    this.#codecs = codecs
    this.#columns = Object.keys(codecs) as (keyof Row & string)[]
    this.#key = key
    this.#unique = unique
  }

  // --- calls

  /** Adds a row unless its key, or a unique column of it, is in use. */
  add(): RecordCall<[row: Row], boolean> {
    const text = `insert into ${this.#name} ${this.#into} on conflict do nothing ${this.#returning}`
    return this.once({
      statements: (row) => [{ text, values: this.values(row) }],
      held: (all, row) => {
        const rows = this.heldIn(all)
        const isTaken = (one: Row): boolean => this.#unique.some((name) => one[name] === row[name])
        if (rows.has(this.idOf(row)) || [...rows.values()].some(isTaken)) return false
        rows.set(this.idOf(row), this.#whole(row))
        return true
      },
    })
  }

  /** Adds a row, or changes the one with its key. */
  put<More extends object = Row>(upsert: Upsert<Row, Row & More> = {}): RecordCall<[row: Row & More], boolean> {
    const { only, greatest = [], when } = upsert
    const changed = only ?? this.#columns.filter((name) => !(this.#key as readonly string[]).includes(name))
    const sets = changed.map((name) => `${column(name)} = ${greatest.includes(name) ? raised(name) : `excluded.${column(name)}`}`)
    const where = when === undefined ? '' : ` where ${when.sql}`
    const text = `insert into ${this.#name} as kept ${this.#into}
  on conflict (${this.#keyColumns}) do update set ${sets.join(', ')}${where} ${this.#returning}`
    return this.once({
      statements: (row) => [{ text, values: this.values(row) }],
      held: (all, row) => {
        const rows = this.heldIn(all)
        const kept = rows.get(this.idOf(row))
        if (kept !== undefined && when?.held(kept, row) === false) return false
        const changes = Object.fromEntries(
          changed.map((name) => [name, greatest.includes(name) ? larger(kept?.[name], row[name]) : row[name]]),
        )
        rows.set(this.idOf(row), { ...this.#whole(row), ...kept, ...changes })
        return true
      },
    })
  }

  /** Changes those columns of a row that the change has, if there is one with its key. */
  change<More extends object = object>(upsert: Omit<Upsert<Row, Keyed<Row, Key> & More>, 'only'> = {}) {
    const { greatest = [], when } = upsert
    const own = this.#key.map((name) => `${column(name)} = :${name}`)
    const where = [...own, ...(when === undefined ? [] : [when.sql])].join(' and ')
    const namesIn = (change: object) => this.#columns.filter((name) => name in change && !(this.#key as readonly string[]).includes(name))
    const set = (name: string) =>
      `${column(name)} = ${(greatest as readonly string[]).includes(name) ? `greatest(${column(name)}, :${name})` : `:${name}`}`
    return this.once<[change: Keyed<Row, Key> & More]>({
      statements: (change) => {
        const text = `update ${this.#name} as kept set ${namesIn(change).map(set).join(', ')} where ${where} ${this.#returning}`
        return [{ text, values: this.values(change) }]
      },
      held: (all, change) => {
        const rows = this.heldIn(all)
        const kept = rows.get(this.idOf(change))
        if (kept === undefined || when?.held(kept, change) === false) return false
        const changes = Object.fromEntries(
          namesIn(change).map((name) => [name, greatest.includes(name) ? larger(kept[name], change[name]) : change[name]]),
        )
        rows.set(this.idOf(change), { ...kept, ...changes })
        return true
      },
    })
  }

  /** Deletes the row with a key. */
  remove<K extends readonly string[] = [key: string]>(): RecordCall<K, boolean> {
    const text = `delete from ${this.#name} where ${this.#key.map((name) => `${column(name)} = :${name}`).join(' and ')} ${this.#returning}`
    return this.once({
      statements: (...key) => [{ text, values: this.#keyValues(key) }],
      held: (rows, ...key) => this.heldIn(rows).delete(idOf(key)),
    })
  }

  /** Deletes the rows that meet a condition. */
  prune<More extends object>({ sql, held }: Rule<Row, More>): RecordCall<[limit: More], void> {
    const text = `delete from ${this.#name} where ${sql}`
    return this.write({
      statements: (limit) => [{ text, values: this.values(limit) }],
      held: (all, limit) => {
        const rows = this.heldIn(all)
        for (const [id, row] of rows) if (held(row, limit)) rows.delete(id)
      },
    })
  }

  /** All rows, ordered by their keys. */
  all(only?: Rule<Row, never>): ReadCall<[], readonly Row[]> {
    const where = only === undefined ? '' : ` where ${only.sql}`
    const text = `select ${this.#selected} from ${this.#name}${where} order by ${this.#keyColumns}`
    return this.read({
      statements: () => [{ text, values: {} }],
      answer: (rows) => rows.map((row) => this.decode(row)),
      held: (rows) => this.#ordered([...this.heldIn(rows).values()].filter((row) => only?.held(row, undefined as never) !== false)),
    })
  }

  /** The row with these values in columns; undefined when there is none. */
  find<V extends readonly string[] = [value: string]>(...by: readonly (keyof Row & string)[]): ReadCall<V, Row | undefined> {
    const text = `select ${this.#selected} from ${this.#name} where ${by.map((name) => `${column(name)} = :${name}`).join(' and ')}`
    return this.read({
      statements: (...values) => [{ text, values: Object.fromEntries(by.map((name, n) => [name, values[n] ?? null])) }],
      answer: ([row]) => (row === undefined ? undefined : this.decode(row)),
      held: (rows, ...values) => [...this.heldIn(rows).values()].find((row) => by.every((name, n) => row[name] === values[n])),
    })
  }

  // --- calls with statements of their own

  read<A extends readonly unknown[], R>(call: OwnCall<A, R> & Pick<RecordCall<A, R>, 'answer'>): ReadCall<A, R> {
    return { ...this.#call(call), kind: 'read', answer: call.answer }
  }

  write<A extends readonly unknown[]>(call: OwnCall<A, void>): RecordCall<A, void> {
    return { ...this.#call(call), kind: 'write', answer: () => undefined }
  }

  /** The last statement returns a row when the call has an effect. */
  once<A extends readonly unknown[]>(call: OwnCall<A, boolean>): RecordCall<A, boolean> {
    return this.effect({ ...call, answer: ({ length }) => length > 0 })
  }

  /** A call of the kind `once` with an answer of its own. */
  effect<A extends readonly unknown[], R>(call: OwnCall<A, R> & Pick<RecordCall<A, R>, 'answer'>): RecordCall<A, R> {
    return { ...this.#call(call), kind: 'once', answer: call.answer }
  }

  #call<A extends readonly unknown[], R>(call: OwnCall<A, R>) {
    return { ...call, key: (...args: A) => `${this.#name} ${this.#keyIn(args)}` }
  }

  // --- rows

  /** The rows of a queue in memory. */
  heldIn(rows: HeldRows): Map<string, Row> {
    const held = rows.tables.get(this.#name) ?? new Map<string, Row>()
    rows.tables.set(this.#name, held)
    return held as Map<string, Row>
  }

  idOf(row: Pick<Row, Key>): string {
    return idOf(this.#key.map((name) => row[name]))
  }

  values(row: object): Values {
    const coded = Object.entries(row).map(([name, value]) => [
      name,
      this.#codecs[name as keyof Row & string] === 'json' ? JSON.stringify(value) : value,
    ])
    return Object.fromEntries(coded) as Values
  }

  decode(row: object): Row {
    const decoded = Object.entries<unknown>({ ...row }).map(([name, value]) => {
      const codec = this.#codecs[name as keyof Row & string]
      if (codec === 'flag') return [name, value === true || value === 1] as const
      return [name, codec === 'json' ? (JSON.parse(String(value)) as unknown) : value] as const
    })
    return Object.fromEntries(decoded) as Row
  }

  #ordered(rows: readonly Row[]): Row[] {
    const order = (a: Row, b: Row) => this.#key.reduce((so, name) => so || compare(String(a[name]), String(b[name])), 0)
    return rows.toSorted(order)
  }

  #whole(row: Row): Row {
    return Object.fromEntries(this.#columns.map((name) => [name, row[name]])) as Row
  }

  #keyValues(key: readonly unknown[]): Values {
    return Object.fromEntries(this.#key.map((name, n) => [name, key[n]])) as Values
  }

  /** The key in the arguments of a call: in the first one, or as the first ones. */
  #keyIn(args: readonly unknown[]): string {
    const [first] = args
    const key =
      typeof first === 'object' && first !== null ? this.#key.map((name) => (first as Partial<Row>)[name]) : args.slice(0, this.#key.length)
    return key.join(' ')
  }

  get #keyColumns(): string {
    return this.#key.map(column).join(', ')
  }

  get #returning(): string {
    return `returning ${this.#keyColumns}`
  }

  get #into(): string {
    return `(${this.#columns.map(column).join(', ')}) values (${parameters(this.#columns)})`
  }

  get #selected(): string {
    return this.#columns.map((name) => `${column(name)} as "${name}"`).join(', ')
  }
}

const idOf = (key: readonly unknown[]): string => (key.length === 1 ? String(key[0]) : JSON.stringify(key))

const raised = (name: string): string => `greatest(kept.${column(name)}, excluded.${column(name)})`

const larger = (one: unknown, other: unknown): unknown => Math.max(Number(one ?? 0), Number(other))

// --- changes of calls

/** A call without an answer. It has the same effect twice as once. */
export const silent = <A extends readonly unknown[]>(call: RecordCall<A, boolean>): RecordCall<A, void> => ({
  ...call,
  kind: 'write',
  answer: () => undefined,
  held: (rows, ...args) => void call.held(rows, ...args),
})

/** A call with other arguments. */
export const given = <A extends readonly unknown[], B, R>(of: (...args: A) => B, call: RecordCall<[one: B], R>): RecordCall<A, R> => ({
  ...call,
  key: (...args) => call.key(of(...args)),
  statements: (...args) => call.statements(of(...args)),
  held: (rows, ...args) => call.held(rows, of(...args)),
})

/** A call with another answer. */
export const answered = <A extends readonly unknown[], R, S>(call: ReadCall<A, R>, of: (answer: R) => S): ReadCall<A, S> => ({
  ...call,
  answer: (rows) => of(call.answer(rows)),
  held: (rows, ...args) => of(call.held(rows, ...args)),
})

/** A call after another one in one transaction. */
export const after = <A extends readonly unknown[], R>(first: RecordCall<A, void>, call: RecordCall<A, R>): RecordCall<A, R> => ({
  ...call,
  statements: (...args) => [...first.statements(...args), ...call.statements(...args)],
  held: (rows, ...args) => {
    first.held(rows, ...args)
    return call.held(rows, ...args)
  },
})

/** A call for each of several arguments. */
export const each = <A>(call: RecordCall<[one: A]>): RecordCall<[all: readonly A[]], void> => ({
  ...silent(call as RecordCall<[one: A], boolean>),
  key: (all) => all.map((one) => call.key(one)).join('\n'),
  statements: (all) => all.flatMap((one) => call.statements(one)),
  held: (rows, all) => {
    for (const one of all) call.held(rows, one)
  },
})

/** A call that may use the reserved space of a full disk. */
export const reserved = <A extends readonly unknown[], R>(call: RecordCall<A, R>): RecordCall<A, R> => ({ ...call, room: 'reserve' })
