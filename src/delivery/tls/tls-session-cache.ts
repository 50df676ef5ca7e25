/**
 * TLS sessions of hosts, which the next connection with the same policy can resume (RFC 8446 §2.2, Postfix
 * smtp_tls_session_cache_database). A host that refuses to resume a session performs a full handshake.
 */

/** The oldest is dropped first. */
const MOST_SESSIONS = 1_000

export class TlsSessionCache {
  readonly #tickets = new Map<string, Buffer>()

  /** Returns the session to resume. The key has host and policy, because the certificate of a resumed session is not verified again. */
  offer(key: string): Buffer | undefined {
    return this.#tickets.get(key)
  }

  keep(key: string, ticket: Buffer): void {
    this.#tickets.delete(key)
    this.#tickets.set(key, ticket)
    if (this.#tickets.size <= MOST_SESSIONS) return
    const [oldest] = this.#tickets.keys()
    if (oldest !== undefined) this.#tickets.delete(oldest)
  }

  /** Drops a session, for example after a failed handshake. */
  forget(key: string): void {
    this.#tickets.delete(key)
  }
}
