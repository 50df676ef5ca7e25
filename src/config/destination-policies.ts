/**
 * Settings and compiled retry policies of destinations. This is the only cache of them: callers keep a destination's name and
 * look the policy up each time, because a reload replaces the cache.
 */
import { compileRetryPolicy, type RetryPolicy } from '../backoff/retry-policy.ts'
import { settingsUnder, tableFor, type Settings } from './destination-settings.ts'
import type { Config } from './options.ts'

/** Policy of all destinations to which the same table applies. */
export interface DestinationPolicy {
  /** Heading of the table that applies; null when only the global parameters apply. */
  readonly table: string | null
  readonly settings: Settings
  readonly retry: RetryPolicy
}

/** Maximum number of cached names. The oldest is dropped first. */
const NAMES = 10_000

export class DestinationPolicies {
  readonly #config: Config
  /** Policies by table. Their number does not depend on the number of destinations. */
  readonly #byTable = new Map<string | null, DestinationPolicy>()
  readonly #byName = new Map<string, DestinationPolicy>()

  constructor(config: Config) {
    this.#config = config
  }

  /** The policy of a destination. Throws PolicyError for an invalid retry policy, which `loadConfig` would have refused. */
  for(destination: string): DestinationPolicy {
    const known = this.#byName.get(destination)
    if (known !== undefined) return known
    const policy = this.#under(tableFor(this.#config, destination))
    const [oldest] = this.#byName.size >= NAMES ? this.#byName.keys() : []
    if (oldest !== undefined) this.#byName.delete(oldest)
    this.#byName.set(destination, policy)
    return policy
  }

  #under(table: string | null): DestinationPolicy {
    const known = this.#byTable.get(table)
    if (known !== undefined) return known
    const settings = settingsUnder(this.#config, table)
    const { retry_backoff, minimal_backoff_time: minimal, maximal_backoff_time: maximal } = settings
    const policy = { table, settings, retry: compileRetryPolicy({ retry_backoff, minimal, maximal }) }
    this.#byTable.set(table, policy)
    return policy
  }
}
