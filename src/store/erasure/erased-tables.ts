/**
 * The tables that have addresses of mail which has left the queue, and how an erasure changes their columns. `test/store/erasure` compares
 * them with the migrations, so that a new column is either here or named there with the reason why it has none.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { EVENTS } from '../../events/event-types.ts'
import { storedType } from '../../events/kept-event.ts'
import type { MessageId } from '../../mail/message.ts'
import { decodeHistory, encodeHistory } from '../history-record.ts'
import type { Eraser } from './eraser.ts'

export type Stored = string | number | Uint8Array | null
/** A row, by column. */
export type StoredRow = Readonly<Record<string, Stored>>

/** A value without the addresses. */
type Erased = (stored: string | Uint8Array, eraser: Eraser, row: StoredRow) => string | Uint8Array

export interface ErasedTable {
  readonly name: string
  readonly key: readonly string[]
  /** Column of the time of a row; null for a table whose rows are of now. */
  readonly at: string | null
  /** Further columns that are read. */
  readonly reads?: readonly string[]
  readonly columns: Readonly<Record<string, Erased>>
}

const textOf = (stored: string | Uint8Array): string => (typeof stored === 'string' ? stored : Buffer.from(stored).toString())

const text: Erased = (stored, eraser) => eraser.text(textOf(stored))

const json: Erased = (stored, eraser) => JSON.stringify(eraser.value(JSON.parse(textOf(stored))))

const record: Erased = (stored, eraser, { message }) => encodeHistory(eraser.record(decodeHistory(message as MessageId, textOf(stored))))

const dialogue: Erased = (stored, eraser) => {
  const before = inflateRawSync(stored).toString()
  const after = eraser.dialogue(before)
  return before === after ? stored : deflateRawSync(after)
}

/** The data of an event, whose values are in the order of its members. */
export function erasedData(type: string, data: string, eraser: Eraser): string {
  const names = EVENTS[storedType(type)].members
  const values = JSON.parse(data) as readonly unknown[]
  return JSON.stringify(values.map((value, n) => eraser.value(value, names[n])))
}

const eventLines: Erased = (stored, eraser) =>
  textOf(stored)
    .split('\n')
    .map((line) => {
      const afterType = line.indexOf(' ')
      const afterTime = line.indexOf(' ', afterType + 1) + 1
      return line.slice(0, afterTime) + erasedData(line.slice(0, afterType), line.slice(afterTime), eraser)
    })
    .join('\n')

const eventOfRow: Erased = (stored, eraser, { type }) => erasedData(String(type), textOf(stored), eraser)

/** The history, whose messages are searched by their addresses too: an engine erases their entries of the index with it. */
export const HISTORY: ErasedTable = { name: 'history', key: ['seq'], at: 'left_at', reads: ['message'], columns: { record } }

const COMMON: readonly ErasedTable[] = [
  HISTORY,
  { name: 'session', key: ['id'], at: 'at', columns: { bytes: dialogue } },
  { name: 'parked', key: ['subscription', 'seq'], at: 'parked_at', columns: { answer: text } },
  { name: 'subscription', key: ['name'], at: null, columns: { why: text, last_answer: json } },
  { name: 'audit', key: ['id'], at: 'at', columns: { arguments: text, reason: text, error: text } },
  { name: 'kept_request', key: ['key'], at: 'at', columns: { answer: json } },
  { name: 'destination', key: ['name'], at: null, columns: { suspend_reason: text, site_status: json } },
  { name: 'provider_suspension', key: ['provider'], at: null, columns: { reason: text } },
  // The address of an entry stays, since mail to it is refused until the entry is removed.
  { name: 'suppression', key: ['scope', 'address'], at: null, columns: { reply: text } },
  { name: 'schedule_run', key: ['name', 'planned'], at: 'began_at', columns: { text } },
]

export const ERASED_TABLES = {
  sqlite: [...COMMON, { name: 'event', key: ['last'], at: 'at', columns: { lines: eventLines } }],
  postgres: [...COMMON, { name: 'event', key: ['id'], at: 'at', reads: ['type'], columns: { data: eventOfRow } }],
} as const satisfies Readonly<Record<string, readonly ErasedTable[]>>

/** Table of contents that are deleted: those of mail of such an address, and those that have it. */
export const KEPT_CONTENT = 'kept_content'

/** Values of the key of a row. */
export const keyOf = ({ key }: ErasedTable, row: StoredRow): readonly Stored[] => key.map((name) => row[name] ?? null)

/** The columns of a row that an erasure changes; null when it changes none. */
export function erasedColumns(
  { columns, at }: ErasedTable,
  row: StoredRow,
  eraser: Eraser,
): Readonly<Record<string, string | Uint8Array>> | null {
  if (at !== null && Number(row[at]) >= eraser.terms.before) return null
  const changed = Object.entries(columns).flatMap(([name, erase]) => {
    const stored = row[name] ?? null
    if (stored === null || typeof stored === 'number') return []
    const erased = erase(stored, eraser, row)
    return erased === stored ? [] : [[name, erased] as const]
  })
  return changed.length === 0 ? null : Object.fromEntries(changed)
}

/** Statements of a table; `parameter` spells the parameter of a number, from 1. */
export function erasureStatements({ name, key, at, reads = [], columns }: ErasedTable, parameter: (n: number) => string) {
  const read = [...new Set([...key, ...(at === null ? [] : [at]), ...reads, ...Object.keys(columns)])]
  const of = (names: readonly string[], from: number): string => names.map((_, n) => parameter(from + n)).join(', ')
  const order = `order by ${key.join(', ')} limit`
  return {
    first: `select ${read.join(', ')} from ${name} ${order} ${parameter(1)}`,
    next: `select ${read.join(', ')} from ${name} where (${key.join(', ')}) > (${of(key, 1)}) ${order} ${parameter(key.length + 1)}`,
    /** Changes columns; their values follow those of the key. */
    change: (changed: readonly string[]) =>
      `update ${name} set ${changed.map((column, n) => `${column} = ${parameter(key.length + 1 + n)}`).join(', ')}
  where ${key.map((column, n) => `${column} = ${parameter(n + 1)}`).join(' and ')}`,
  }
}
