/**
 * A session whose statements are prepared once, sent without waiting for the answers to earlier ones, and answered in order.
 */
import type pg from 'pg'
import { statementFailed } from './sql-errors.ts'

/** A parameter of a statement. Arrays are buffers of arrays.ts. */
export type Parameter = string | number | boolean | Buffer | null

/** Names of prepared statements by their texts, the same in all sessions. */
const names = new Map<string, string>()

function nameOf(text: string): string {
  const name = names.get(text) ?? `deferd_${names.size + 1}`
  names.set(text, name)
  return name
}

/** Statements of a session. */
export interface Statements {
  /** Runs a statement and returns its rows. */
  query<Row extends object = never>(text: string, parameters?: readonly Parameter[]): Promise<readonly Row[]>
}

/** The socket of a client, which the client's type does not show. */
interface Internals {
  readonly connection: { readonly stream: { cork(): void; uncork(): void; destroy(): void } }
}

export class Connection implements Statements {
  readonly #client: pg.Client
  readonly #internals: Internals
  #isLost = false
  #warning: string | null = null

  constructor(client: pg.Client) {
    this.#client = client
    this.#internals = client
    client.on('end', () => (this.#isLost = true))
    client.on('error', () => (this.#isLost = true))
    client.on('notice', ({ severity, message }) => {
      if (severity === 'WARNING') this.#warning = message ?? 'a warning'
    })
  }

  /** True when the session has ended. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** Returns the last warning since the previous call; null when there was none. */
  takeWarning(): string | null {
    const warning = this.#warning
    this.#warning = null
    return warning
  }

  async query<Row extends object = never>(text: string, parameters: readonly Parameter[] = []): Promise<readonly Row[]> {
    const { rows } = await this.#client.query<Row>({ name: nameOf(text), text, values: [...parameters] })
    return rows
  }

  /** Runs a statement without parameters that is not worth preparing, and returns its command tag: `COMMIT`, `ROLLBACK` and others. */
  async command(text: string): Promise<string> {
    return (await this.#client.query(text)).command
  }

  /** Sends all statements that `send` makes in one write to the socket. */
  together<T>(send: () => T): T {
    const { stream } = this.#internals.connection
    stream.cork()
    try {
      return send()
    } finally {
      stream.uncork()
    }
  }

  /** Listens to a channel (NOTIFY), and calls `notified` with the payload of each notification. */
  async listen(channel: string, notified: (payload: string) => void): Promise<void> {
    this.#client.on('notification', ({ channel: of, payload = '' }) => (of === channel ? notified(payload) : undefined))
    await this.command(`listen ${channel}`)
  }

  /** Closes the socket at once, without the statements under way. */
  destroy(): void {
    this.#isLost = true
    this.#internals.connection.stream.destroy()
  }

  /** Ends the session after the statements under way. */
  async end(): Promise<void> {
    if (this.#isLost) return
    await this.#client.end()
  }
}

/** A connection of a command, whose statements reject with DatabaseAway or DatabaseUnusable. */
export class CommandConnection extends Connection {
  override async query<Row extends object = never>(text: string, parameters?: readonly Parameter[]): Promise<readonly Row[]> {
    return stated(() => super.query<Row>(text, parameters))
  }

  override async command(text: string): Promise<string> {
    return stated(() => super.command(text))
  }
}

async function stated<T>(statement: () => Promise<T>): Promise<T> {
  try {
    return await statement()
  } catch (error) {
    throw statementFailed(error)
  }
}
