/**
 * A session that is opened at its first use, and again after a failure. The effects of a failed call are unknown. Before the next call
 * the server ends the former session, so that nothing of it takes effect later.
 */
import { errorMessage } from '../../../system/caught-error.ts'
import { seconds, type Clock, type Duration } from '../../../system/clock.ts'
import { StoreUnavailable } from '../../queue-store.ts'
import { openSession, type SessionTerms } from './client.ts'
import { Connection } from './database-connection.ts'
import { DatabaseAway } from '../../membership/database-errors.ts'

/** Ends the earlier sessions of the same name, and waits up to 2 s for their end. */
const END_FORMER = `
select pg_terminate_backend(pid, 2000) from pg_stat_activity
where application_name = current_setting('application_name') and usename = current_user and pid <> pg_backend_pid()`

/** Time limit for the end of a session in order. */
const END_LIMIT: Duration = seconds(1)

interface LastingSessionDeps {
  readonly terms: SessionTerms
  readonly clock: Clock
  /** Time limit of a call. */
  readonly limit: Duration
  /** Prepares each session before its first call. */
  readonly prepare?: (connection: Connection) => Promise<void>
}

export class LastingSession {
  readonly #deps: LastingSessionDeps
  #connection: Connection | null = null
  #opening: Promise<Connection> | null = null
  /** Settles when the calls so far have ended. */
  #last: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(deps: LastingSessionDeps) {
    this.#deps = deps
  }

  /**
   * Runs `work` on the session, after the calls before. Rejects with StoreUnavailable when the session cannot be opened, a statement
   * fails, or the time limit is over.
   */
  run<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const result = this.#last.then(() => this.#run(work))
    this.#last = result.catch(() => undefined)
    return result
  }

  async #run<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.#opened()
    const timer = this.#deps.clock.after(this.#deps.limit, () => connection.destroy())
    try {
      return await work(connection)
    } catch (error) {
      this.#drop(connection)
      throw error instanceof StoreUnavailable ? error : failure(error)
    } finally {
      timer.cancel()
    }
  }

  /** Ends the session. Later calls reject. */
  async close(): Promise<void> {
    this.#closed = true
    const connection = this.#connection
    this.#connection = null
    if (connection === null) return
    const timer = this.#deps.clock.after(END_LIMIT, () => connection.destroy())
    await connection.end()
    timer.cancel()
  }

  #opened(): Promise<Connection> {
    if (this.#closed) return Promise.reject(new DatabaseAway('the session is closed'))
    if (this.#connection !== null && !this.#connection.isLost) return Promise.resolve(this.#connection)
    return (this.#opening ??= this.#open().finally(() => (this.#opening = null)))
  }

  async #open(): Promise<Connection> {
    const connection = new Connection(await openSession(this.#deps.terms))
    try {
      await connection.command(END_FORMER)
      await this.#deps.prepare?.(connection)
    } catch (error) {
      connection.destroy()
      throw failure(error)
    }
    if (this.#closed) await connection.end()
    else this.#connection = connection
    return connection
  }

  #drop(connection: Connection): void {
    if (this.#connection === connection) this.#connection = null
    connection.destroy()
  }
}

const failure = (error: unknown): DatabaseAway => new DatabaseAway(`the database failed: ${errorMessage(error)}`, { cause: error })
