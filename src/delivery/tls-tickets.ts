/**
 * TLS sessions of hosts, so that the next connection to the same host on the same terms need not begin from nothing
 * (RFC 8446 §2.2, postfix smtp_tls_session_cache_database). A host may always insist on beginning anew.
 */

/** Hosts remembered; the one longest unused goes first. */
const MOST = 1_000

export class TlsTickets {
  readonly #tickets = new Map<string, Buffer>()

  /** What to offer to a host; the key names the host and the terms: a session is not verified again. */
  offer(key: string): Buffer | undefined {
    return this.#tickets.get(key)
  }

  keep(key: string, ticket: Buffer): void {
    this.#tickets.delete(key)
    this.#tickets.set(key, ticket)
    if (this.#tickets.size <= MOST) return
    const [oldest] = this.#tickets.keys()
    if (oldest !== undefined) this.#tickets.delete(oldest)
  }

  /** It did no good. */
  forget(key: string): void {
    this.#tickets.delete(key)
  }
}
