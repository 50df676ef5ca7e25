/** Issuers that TLSA records of usage 2 have matched, by the digest of the terms: the next handshake verifies with them at once. */

/** The oldest is dropped first. */
const MOST_ISSUERS = 1_000

export class DaneAnchors {
  readonly #pems = new Map<string, string>()

  find(digest: string): string | undefined {
    return this.#pems.get(digest)
  }

  keep(digest: string, pem: string): void {
    this.#pems.set(digest, pem)
    const [oldest] = this.#pems.keys()
    if (this.#pems.size > MOST_ISSUERS && oldest !== undefined) this.#pems.delete(oldest)
  }

  forget(digest: string): void {
    this.#pems.delete(digest)
  }
}
