/** Runs calls of records (records/record-table.ts) in the transaction of the caller. */
import type { Database, Statement } from 'better-sqlite3'
import type { RecordCall } from '../../records/record-table.ts'
import { recordCall, type SentRecordCall } from '../../records/records.ts'

export class RecordCalls {
  readonly #db: Database
  readonly #prepared = new Map<string, Statement<[object], object>>()

  constructor(db: Database) {
    this.#db = db
  }

  record(...call: SentRecordCall): unknown {
    return this.run(recordCall(call), ...call[2])
  }

  run<A extends readonly unknown[], R>(call: RecordCall<A, R>, ...args: A): R {
    let rows: readonly object[] = []
    for (const { text, values } of call.statements(...args)) {
      const statement = this.#statement(text)
      const parameters = Object.fromEntries(
        Object.entries(values).map(([name, value]) => [name, typeof value === 'boolean' ? Number(value) : value]),
      )
      rows = statement.reader ? statement.all(parameters) : (statement.run(parameters), [])
    }
    return call.answer(rows)
  }

  #statement(text: string): Statement<[object], object> {
    const known = this.#prepared.get(text) ?? this.#db.prepare<[object], object>(text.replaceAll('greatest(', 'max('))
    this.#prepared.set(text, known)
    return known
  }
}
