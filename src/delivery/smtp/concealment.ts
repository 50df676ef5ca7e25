/** Removes the secrets of a login from the replies of a server that repeats what it received. Pure. */

const CONCEALED = '****'
/** Minimum length of a secret, and of a part of it, that is found. Shorter texts occur in ordinary words. */
const SHORTEST_SECRET = 8
/** Distance of the parts that are compared: parts of SHORTEST_SECRET + STEP - 1 characters are always found. */
const STEP = 4

/** Runs of characters of which access tokens and base64 consist (RFC 6750 §2.1, RFC 4648 §4). */
const RUNS = /[\w.~+/=-]{8,}/g

export class Concealment {
  readonly #secrets: readonly string[]
  readonly #folded: readonly string[]

  constructor(secrets: readonly string[] = []) {
    this.#secrets = secrets.filter(({ length }) => length >= SHORTEST_SECRET)
    this.#folded = this.#secrets.map((secret) => secret.toLowerCase())
  }

  /** Replaces each secret, and each run of characters that has a part of one, also in other case. */
  apply(text: string): string {
    if (this.#secrets.length === 0) return text
    const shown = this.#secrets.reduce((left, secret) => left.replaceAll(secret, CONCEALED), text)
    return shown.replace(RUNS, (run) => (this.#betrays(run.toLowerCase()) ? CONCEALED : run))
  }

  applyAll(texts: readonly string[]): readonly string[] {
    return this.#secrets.length === 0 ? texts : texts.map((text) => this.apply(text))
  }

  #betrays(run: string): boolean {
    for (let at = 0; at < run.length - SHORTEST_SECRET + STEP; at += STEP) {
      const part = run.slice(Math.min(at, run.length - SHORTEST_SECRET)).slice(0, SHORTEST_SECRET)
      if (this.#folded.some((secret) => secret.includes(part))) return true
    }
    return false
  }
}
