/** The session of reads that need no transaction. It is opened at its first use, and again after a loss. Reads overlap. */
import type { Connection, Parameter, Statements } from './database-connection.ts'
import { DatabaseAway } from './database-errors.ts'
import { databaseAway, failureKind } from './sql-errors.ts'

export class ReadingSession implements Statements {
  readonly #connect: () => Promise<Connection>
  #connection: Promise<Connection> | null = null
  #isClosed = false

  constructor(connect: () => Promise<Connection>) {
    this.#connect = connect
  }

  /** Rejects with StoreUnavailable when the database cannot be reached. */
  async query<Row extends object = never>(text: string, parameters?: readonly Parameter[]): Promise<readonly Row[]> {
    const connection = await this.#opened()
    try {
      return await connection.query<Row>(text, parameters)
    } catch (error) {
      const kind = failureKind(error)
      if (kind === 'lost') connection.destroy()
      throw kind === 'call' ? error : databaseAway(error)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const connection = await this.#connection?.catch(() => null)
    await connection?.end()
  }

  async #opened(): Promise<Connection> {
    if (this.#isClosed) throw new DatabaseAway('the queue is closed')
    const known = await this.#connection
    if (known?.isLost === false) return known
    const opening = (this.#connection = this.#connect())
    // A failed opening is tried again by the next read.
    opening.catch(() => (this.#connection = null))
    return opening
  }
}
