/** Outcomes of the files of the maildrop, for `sendmail -v`. */

/** Maximum number of files whose outcome is kept for a later question. */
const KEPT = 1_000

export class SubmissionOutcomes {
  /** Outcomes by name of the file, the earliest first. */
  readonly #settled = new Map<string, string>()
  readonly #waiting = new Map<string, Set<(outcome: string) => void>>()

  /** Records the outcome of a file: one line of text for the submitter. */
  settle(name: string, outcome: string): void {
    this.#settled.delete(name)
    this.#settled.set(name, outcome)
    for (const oldest of this.#settled.keys()) {
      if (this.#settled.size <= KEPT) break
      this.#settled.delete(oldest)
    }
    const listeners = this.#waiting.get(name) ?? []
    this.#waiting.delete(name)
    for (const listener of listeners) listener(outcome)
  }

  /** Calls `listener` once, when the outcome of the file is known. Returns a function that cancels this. */
  listen(name: string, listener: (outcome: string) => void): () => void {
    const known = this.#settled.get(name)
    if (known !== undefined) {
      listener(known)
      return () => undefined
    }
    const listeners = this.#waiting.get(name) ?? new Set()
    this.#waiting.set(name, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#waiting.get(name) === listeners) this.#waiting.delete(name)
    }
  }
}
