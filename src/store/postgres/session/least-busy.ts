/**
 * Statements on several sessions: each is sent on the one with the fewest statements in progress, so that the server works for a
 * listing in parallel.
 */
import type { Parameter, Statements } from './database-connection.ts'

interface Session {
  readonly statements: Statements
  underWay: number
}

/** The statements do not depend on each other. Without statements under way, the first session is used. */
export class LeastBusy implements Statements {
  readonly #sessions: readonly Session[]

  constructor(sessions: readonly Statements[]) {
    this.#sessions = sessions.map((statements) => ({ statements, underWay: 0 }))
  }

  async query<Row extends object = never>(text: string, parameters?: readonly Parameter[]): Promise<readonly Row[]> {
    const session = this.#sessions.reduce((least, one) => (one.underWay < least.underWay ? one : least))
    session.underWay++
    try {
      return await session.statements.query<Row>(text, parameters)
    } finally {
      session.underWay--
    }
  }
}
