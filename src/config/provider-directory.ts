/**
 * Providers of destinations, learned from mail exchangers. The queue stores them; this is the copy in memory, filled by the scheduler, by
 * which settings are chosen.
 */

/** Key of the saved state of a provider as a whole, beside the states of destinations. No domain has a colon. */
export const nameOfProvider = (provider: string): string => `provider:${provider}`

export class ProviderDirectory {
  readonly #providers = new Map<string, string>()

  /** Provider of a destination; null for none, or while it is unknown. */
  of(destination: string): string | null {
    return this.#providers.get(destination) ?? null
  }

  replace(members: Iterable<{ readonly destination: string; readonly provider: string }>): void {
    this.#providers.clear()
    for (const { destination, provider } of members) this.#providers.set(destination, provider)
  }

  set(destination: string, provider: string | null): void {
    if (provider === null) this.#providers.delete(destination)
    else this.#providers.set(destination, provider)
  }
}
