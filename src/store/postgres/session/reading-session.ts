/** The session of reads that need no transaction. It is opened at its first use, and again after a loss. Reads overlap. */
import type { StoreSide } from '../../store-health.ts'
import type { Connection, Parameter, Statements } from './database-connection.ts'
import { DatabaseAway } from '../../membership/database-errors.ts'
import { failureKind, readFailed } from './sql-errors.ts'

export class ReadingSession implements Statements, StoreSide {
  readonly #connect: () => Promise<Connection>
  #connection: Promise<Connection> | null = null
  #asked = 0
  #answered = 0
  #isClosed = false
  #isEnding = false

  constructor(connect: () => Promise<Connection>) {
    this.#connect = connect
  }

  get answered(): number {
    return this.#answered
  }

  get isWaiting(): boolean {
    return this.#asked > this.#answered || this.#isEnding
  }

  /** Rejects with StoreUnavailable when the database cannot be reached. */
  async query<Row extends object = never>(text: string, parameters?: readonly Parameter[]): Promise<readonly Row[]> {
    this.#asked++
    try {
      return await this.#query(text, parameters)
    } finally {
      this.#answered++
    }
  }

  async #query<Row extends object>(text: string, parameters?: readonly Parameter[]): Promise<readonly Row[]> {
    const connection = await this.#opened()
    try {
      return await connection.query<Row>(text, parameters)
    } catch (error) {
      const kind = failureKind(error)
      if (kind === 'lost') connection.destroy()
      throw kind === 'call' ? error : readFailed(error)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#isEnding = true
    const connection = await this.#connection?.catch(() => null)
    await connection?.end()
    this.#isEnding = false
  }

  async abandon(): Promise<boolean> {
    this.#isClosed = true
    // A session that is being opened is closed when it is open.
    this.#connection?.then(
      (connection) => connection.destroy(),
      () => undefined,
    )
    this.#connection = null
    return true
  }

  /** The open session. Calls that come while it is opened share it. */
  async #opened(): Promise<Connection> {
    if (this.#isClosed) throw new DatabaseAway('the queue is closed')
    const opening = (this.#connection ??= this.#connect())
    const connection = await opening.catch((error: unknown) => {
      // The next read tries again.
      this.#forget(opening)
      throw error
    })
    if (!connection.isLost) return connection
    this.#forget(opening)
    return this.#opened()
  }

  #forget(opening: Promise<Connection>): void {
    if (this.#connection === opening) this.#connection = null
  }
}
