/**
 * The open connections. At smtpd_process_limit, the connection with the longest idle time (at least 10 s) is closed to admit a
 * new one. Without such a connection, the new connection gets 421.
 */
import { SECOND, type Clock, type Duration } from '../system/clock.ts'

/** State of the session of a connection. */
export interface OpenSession {
  /** Address of the client. */
  readonly client: string
  /** Last command of the client, as in the log: CONNECT before the first one. */
  readonly stage: string
  /** True from MAIL to the reply to the content. */
  readonly isInTransaction: boolean
  /** True while the client waits for a reply. */
  readonly isAwaitingReply: boolean
}

/** A connection, from its first byte to its end. */
export interface OpenConnection {
  /** Undefined before the session. */
  readonly session: OpenSession | undefined
  /** Time since which the client has been awaited, on the monotonic clock; Infinity while the server works. */
  readonly idleSince: Duration
  /** Closes the connection to make room for another. */
  closeEarly(): void
  /** Ends the connection as soon as the message that is being received is complete. */
  drain(): void
  /** Ends the connection at once. */
  destroy(): void
}

/** Idle time after which a connection may be closed for another (Postfix's smtpd_timeout under stress). */
const MIN_IDLE: Duration = 10 * SECOND

export class OpenConnections {
  readonly #open = new Set<OpenConnection>()
  #emptied: (() => void) | undefined

  /** Returns true when at most `limit` connections are open, or when an idle one was closed. A limit of 0 means no limit. */
  haveRoom(limit: number, now: Duration): boolean {
    if (limit === 0 || this.#open.size <= limit) return true
    let longest: OpenConnection | undefined
    for (const one of this.#open) if (one.idleSince < (longest?.idleSince ?? now - MIN_IDLE)) longest = one
    longest?.closeEarly()
    return longest !== undefined
  }

  get sessions(): readonly OpenSession[] {
    return [...this.#open].flatMap(({ session }) => session ?? [])
  }

  add(connection: OpenConnection): void {
    this.#open.add(connection)
  }

  delete(connection: OpenConnection): void {
    this.#open.delete(connection)
    if (this.#open.size === 0) this.#emptied?.()
  }

  /** Ends all connections. Resolves when all have ended; connections still open after `grace` are destroyed. */
  drain(grace: Duration, clock: Clock): Promise<void> {
    return new Promise((resolve) => {
      const timer = clock.after(grace, () => {
        for (const connection of this.#open) connection.destroy()
        resolve()
      })
      this.#emptied = () => {
        timer.cancel()
        resolve()
      }
      for (const connection of this.#open) connection.drain()
      if (this.#open.size === 0) this.#emptied()
    })
  }
}
