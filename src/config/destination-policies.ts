/**
 * Settings and compiled retry policies of destinations. This is the only cache of them: callers keep a destination's name and
 * look the policy up each time, because a reload replaces the cache.
 */
import { compileRetryPolicy, type RetryPolicy } from '../backoff/retry-policy.ts'
import { settingsUnder, tableFor, type Settings } from './destination-settings.ts'
import type { Config } from './options.ts'
import type { ProviderDirectory } from './provider-directory.ts'

/** Policy of all destinations to which the same tables apply. */
export interface DestinationPolicy {
  /** Heading of the table that applies; null when only the global parameters apply. */
  readonly table: string | null
  /** Name of the `[provider.NAME]` table that applies; null for none. */
  readonly provider: string | null
  readonly settings: Settings
  readonly retry: RetryPolicy
}

/** Maximum number of cached names. The oldest is dropped first. */
const NAMES = 10_000

const NO_PROVIDERS: Pick<ProviderDirectory, 'of'> = { of: () => null }

export class DestinationPolicies {
  readonly #config: Config
  readonly #providers: Pick<ProviderDirectory, 'of'>
  /** Policies by provider and table. Their number does not depend on the number of destinations. */
  readonly #byTable = new Map<string | null, Map<string | null, DestinationPolicy>>()
  readonly #byName = new Map<string, DestinationPolicy>()

  /** `providers` tells the providers of destinations; without it none has one. */
  constructor(config: Config, providers: Pick<ProviderDirectory, 'of'> = NO_PROVIDERS) {
    this.#config = config
    this.#providers = providers
  }

  /** Tables of the providers, by name. */
  get providers(): Config['provider'] {
    return this.#config.provider
  }

  /** The policy of a destination. Throws PolicyError for an invalid retry policy, which `loadConfig` would have refused. */
  for(destination: string): DestinationPolicy {
    const provider = this.#providerOf(destination)
    const known = this.#byName.get(destination)
    if (known?.provider === provider) return known
    const policy = this.#under(tableFor(this.#config, destination), provider)
    const [oldest] = this.#byName.size >= NAMES ? this.#byName.keys() : []
    if (oldest !== undefined) this.#byName.delete(oldest)
    this.#byName.set(destination, policy)
    return policy
  }

  /** The provider of a destination, if it has a table. */
  #providerOf(destination: string): string | null {
    const { provider: tables } = this.#config
    const provider = tables.size === 0 ? null : this.#providers.of(destination)
    return provider !== null && tables.has(provider) ? provider : null
  }

  #under(table: string | null, provider: string | null): DestinationPolicy {
    const ofProvider = this.#byTable.get(provider) ?? new Map<string | null, DestinationPolicy>()
    this.#byTable.set(provider, ofProvider)
    const known = ofProvider.get(table)
    if (known !== undefined) return known
    const settings = settingsUnder(this.#config, table, provider)
    const { retry_backoff, minimal_backoff_time: minimal, maximal_backoff_time: maximal } = settings
    const policy = { table, provider, settings, retry: compileRetryPolicy({ retry_backoff, minimal, maximal }) }
    ofProvider.set(table, policy)
    return policy
  }
}
