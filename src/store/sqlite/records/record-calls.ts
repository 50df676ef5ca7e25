/** Runs calls of records (records/record-table.ts) in the transaction of the caller. */
import type { Database, Statement } from 'better-sqlite3'
import type { OwnerId } from '../../../mail/message.ts'
import { spelledMatches, valueFor, type Caller, type RecordCall } from '../../records/record-table.ts'
import { recordCall, type SentRecordCall } from '../../records/records.ts'

export const like = (text: string, pattern: string): string => `${text} like ${pattern} escape '\\'`

export const spelled = (text: string): string =>
  spelledMatches(text.replaceAll('greatest(', 'max(').replaceAll(/= any \(array\((.*?)\)\)/gs, 'in ($1)'), like)

export class RecordCalls {
  readonly #db: Database
  readonly #caller: Caller
  readonly #prepared = new Map<string, Statement<[object], object>>()

  /** `owner` is the number of the owner of the queue; 0 for a reader. */
  constructor(db: Database, owner: OwnerId = 0) {
    this.#db = db
    this.#caller = { owner, name: null }
  }

  record(...call: SentRecordCall): unknown {
    return this.run(recordCall(call), ...call[2])
  }

  run<A extends readonly unknown[], R>(call: RecordCall<A, R>, ...args: A): R {
    let rows: readonly object[] = []
    for (const { text, values } of call.statements(...args)) {
      const statement = this.#statement(text)
      const parameters = Object.fromEntries(
        Object.entries(values).map(([name, given]) => {
          const value = valueFor(this.#caller, given)
          return [name, typeof value === 'boolean' ? Number(value) : value]
        }),
      )
      rows = statement.reader ? statement.all(parameters) : (statement.run(parameters), [])
    }
    return call.answer(rows)
  }

  #statement(text: string): Statement<[object], object> {
    const known = this.#prepared.get(text) ?? this.#db.prepare<[object], object>(spelled(text))
    this.#prepared.set(text, known)
    return known
  }
}
