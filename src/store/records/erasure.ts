/** Erasures that are under way, so that they go on after a crash, and the keys of the texts that stand for erased addresses. */
import { DAY, type Duration, type QueueTime, type WallTime } from '../../system/clock.ts'
import { answered, RecordTable, silent } from './record-table.ts'

export interface StoredErasure {
  /** Its id in the audit log. */
  readonly operation: number
  readonly side: 'recipient' | 'sender'
  readonly pattern: string
  /** As in ErasureTerms. */
  readonly before: QueueTime
  /** Begin of the next slice, as in ErasureSlice. */
  readonly stage: string | null
  readonly after: string | null
  /** The node that carries the erasure out is gone when it has not extended this time. */
  readonly until: QueueTime
}

const table = new RecordTable<StoredErasure, 'operation'>(
  'erasure',
  { operation: 'number', side: 'text', pattern: 'text', before: 'number', stage: 'text', after: 'text', until: 'number' },
  { key: ['operation'] },
)

const ofOperation = (operation: number) => ({ operation })

/** Saves where the next slice begins, in the transaction of a slice. */
export const SAVE_ERASURE = silent(table.change())

/** Ends the rights of an owner that has ended, on a queue with one owner. */
export const endErasureRights = table.write<[]>({
  statements: () => [{ text: 'update erasure set "until" = 0 where "until" > 0', values: {} }],
  held: (rows) => {
    for (const [id, row] of table.heldIn(rows)) table.heldIn(rows).set(id, { ...row, until: 0 })
  },
})

export const ERASURES = {
  add: table.add(),
  all: table.all(),
  /** Takes an erasure whose node is gone. Answers false when another node carries it out. */
  take: table.change<{ readonly now: QueueTime }>({
    when: { sql: 'kept."until" <= :now', held: ({ until }, { now }) => until <= now },
  }),
  end: table.write<[operation: number]>({
    statements: (operation) => [{ text: 'delete from erasure where operation = :operation', values: ofOperation(operation) }],
    held: (rows, operation) => void table.heldIn(rows).delete(String(operation)),
  }),
}

/** A key is used for a year, after which nothing tells that an earlier text and a later one stand for the same address. */
const KEY_LIFETIME: Duration = 365 * DAY

export interface ErasureKey {
  readonly period: number
  /** Random, as hexadecimal digits. */
  readonly key: string
}

/** Number of the period of a time. */
export const keyPeriod = (now: WallTime): number => Math.floor(now / KEY_LIFETIME)

const keys = new RecordTable<ErasureKey, 'period'>('erasure_key', { period: 'number', key: 'text' }, { key: ['period'] })

export const ERASURE_KEYS = {
  /** Adds the key of a period unless it has one. */
  add: keys.add(),
  /** Forgets the keys of earlier periods. */
  prune: keys.prune<{ readonly period: number }>({ sql: 'period < :period', held: (one, { period }) => one.period < period }),
  /** The key of the newest period; undefined before the first. */
  newest: answered(keys.all(), (all) => all.at(-1)),
}
