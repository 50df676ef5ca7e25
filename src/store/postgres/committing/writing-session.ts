/** The writing session of a node, and its renewal. At most one session of a node can commit: the last. */
import type { OwnerId } from '../../../mail/message.ts'
import { seconds, type Clock, type Duration } from '../../../system/clock.ts'
import { StoreUnavailable } from '../../queue-store.ts'
import type { Connection } from '../session/database-connection.ts'
import { nextSession } from '../session/node-queries.ts'

/** Time after which a transaction without an answer is in doubt. The commit of a server whose standby is away has none either. */
const STATEMENT_LIMIT: Duration = seconds(15)

export interface WritingSessionDeps {
  readonly node: OwnerId
  readonly clock: Clock
  readonly connect: () => Promise<Connection>
  /** Examines the database in a new session, before it is used. A rejection ends the session. */
  readonly examine: (connection: Connection) => Promise<void>
}

export class WritingSession {
  readonly #deps: WritingSessionDeps
  #connection: Connection
  /** Number of the session, which its statements name. */
  #number = 1

  /** `connection` is that of the first session of the node. */
  constructor(connection: Connection, deps: WritingSessionDeps) {
    this.#connection = connection
    this.#deps = deps
  }

  get connection(): Connection {
    return this.#connection
  }

  get number(): number {
    return this.#number
  }

  /** Runs statements. Closes the session when they take too long, because the network may have lost them. */
  async limited<T>(work: (connection: Connection) => Promise<T>, connection = this.#connection): Promise<T> {
    const timer = this.#deps.clock.after(STATEMENT_LIMIT, () => connection.destroy())
    try {
      return await work(connection)
    } finally {
      timer.cancel()
    }
  }

  /** Tries to begin the next session, which waits for the end of the transaction of the former. */
  async renew(): Promise<'open' | 'fenced' | 'failed'> {
    let connection: Connection
    try {
      connection = await this.#deps.connect()
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      return 'failed'
    }
    try {
      const [row] = await this.limited(() => connection.query<{ session: number }>(nextSession, [this.#deps.node]), connection)
      // A warning says that the commit may not be on the standby.
      if (connection.takeWarning() !== null) throw new Error('the new session may not be replicated')
      if (row !== undefined) {
        await this.limited(() => this.#deps.examine(connection), connection)
        this.#connection = connection
        this.#number = row.session
        return 'open'
      }
      await connection.end()
      return 'fenced'
    } catch {
      connection.destroy()
      return 'failed'
    }
  }
}
