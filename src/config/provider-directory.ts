/**
 * Providers of destinations, as their mail exchangers have shown them. The queue keeps them; this is the copy in memory, which the
 * scheduler fills and from which settings are chosen.
 */

/** Name of the state of a provider as a whole, beside those of its destinations. No domain has a colon. */
export const nameOfProvider = (provider: string): string => `provider:${provider}`

export class ProviderDirectory {
  readonly #providers = new Map<string, string>()

  /** Provider of a destination; null when it has none, or none is known. */
  of(destination: string): string | null {
    return this.#providers.get(destination) ?? null
  }

  /** Replaces all. */
  replace(members: Iterable<{ readonly destination: string; readonly provider: string }>): void {
    this.#providers.clear()
    for (const { destination, provider } of members) this.#providers.set(destination, provider)
  }

  set(destination: string, provider: string | null): void {
    if (provider === null) this.#providers.delete(destination)
    else this.#providers.set(destination, provider)
  }
}
