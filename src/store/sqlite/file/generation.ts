/**
 * Generation of a queue: a random number in the database and in a file beside it, new with each opening and in each backup. A
 * write-ahead log beside a database of another generation belongs to another database, and SQLite would mix the two.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { ForeignLog, QueueEmptied } from '../../errors.ts'
import { PageFile } from './page-file.ts'
import { RowScan, type StoredColumn } from './row-scan.ts'
import { sync } from './database-files.ts'

const generationFile = (path: string): string => join(dirname(path), 'generation')

const RANDOM = 'select 68719476736 + abs(random() % 400000000000)'
const STORE = `insert into meta (name, value) values ('generation', ?) on conflict (name) do update set value = excluded.value`
/**
 * Modulus of the check in a generation. The check keeps a value in a half-written page (power failure) from being taken for another
 * generation.
 */
const CHECK = 8191

const isGeneration = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value % CHECK === Math.floor(value / CHECK) % CHECK

const META_COLUMNS: readonly StoredColumn[] = [
  { name: 'name', type: 'TEXT' },
  { name: 'value', type: 'INTEGER' },
]
const STORED = `select value from meta where name = 'generation'`

/** Gives a database a new generation and returns it. */
export function renew(db: Database): number {
  const random = db.prepare<[], number>(RANDOM).pluck().get() ?? 0
  const generation = random * CHECK + (random % CHECK)
  db.prepare<[number]>(STORE).run(generation)
  return generation
}

/**
 * Gives the queue a new generation. The generation file keeps all generations since `oldest`, the result of assertOwnLog: until a
 * checkpoint, the database file without its log still has `oldest`, even after several crashes.
 */
export function renewGeneration(db: Database, path: string, oldest: number | null): void {
  const previous = db.prepare<[], number>(STORED).pluck().get()
  const known = knownGenerations(path)
  const from = oldest === null ? 0 : known.indexOf(oldest)
  const kept = from < 0 ? [] : known.slice(from)
  db.transaction(() => {
    const next = renew(db)
    write(path, [...new Set([...kept, ...(previous === undefined ? [] : [previous]), next])])
  }).immediate()
}

/**
 * For a database without tables: throws QueueEmptied when its generation file exists. That file is written only after a queue has
 * its tables, so the database was a queue before.
 */
export function assertNeverFilled(path: string): void {
  if (existsSync(generationFile(path))) throw new QueueEmptied(path, generationFile(path))
}

/**
 * Throws QueueEmptied when the database file is empty or missing beside traces of an earlier queue, whose write-ahead log SQLite
 * would delete. Returns whether the queue is new. A missing file without a write-ahead log means that an operator wants an empty
 * queue.
 */
export function assertNotEmptied(path: string): boolean {
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size !== undefined && size > 0) return false
  const log = `${path}-wal`
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0) throw new QueueEmptied(path, log)
  if (size === 0) assertNeverFilled(path)
  else rmSync(generationFile(path), { force: true })
  return true
}

/**
 * Throws ForeignLog when the write-ahead log beside a database belongs to another database. Returns the generation in the
 * database file, null when there is none. Must run before SQLite opens the file.
 */
export function assertOwnLog(path: string): number | null {
  const found = existsSync(path) ? generationIn(path) : null
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false })
  if (log === undefined || log.size === 0 || found === null) return found
  const known = knownGenerations(path)
  if (known.length > 0 && !known.includes(found)) throw new ForeignLog(path)
  return found
}

function knownGenerations(path: string): readonly number[] {
  if (!existsSync(generationFile(path))) return []
  const lines = readFileSync(generationFile(path), 'utf8').split('\n')
  return lines.filter((line) => /^\d+$/.test(line)).map(Number)
}

/** Generation in the database file without its write-ahead log; null when it is not readable. */
function generationIn(path: string): number | null {
  const file = new PageFile(path, { withLog: false })
  try {
    if (!file.hasHeader) return null
    const scan = new RowScan(file, new Map([['meta', { columns: META_COLUMNS, added: 0, hasRowNumber: false }]]))
    for (const { values } of scan.fromRoots()) if (values[0] === 'generation' && isGeneration(values[1])) return values[1]
    return null
  } finally {
    file.close()
  }
}

function write(path: string, generations: readonly number[]): void {
  const partial = `${generationFile(path)}.partial`
  const file = openSync(partial, 'w', 0o600)
  try {
    writeFileSync(file, generations.map((one) => `${one}\n`).join(''))
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(partial, generationFile(path))
  sync(dirname(path))
}
