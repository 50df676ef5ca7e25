/**
 * Settings and compiled retry policies of destinations. This is the only cache of policies: callers keep a destination's name and look the
 * policy up each time, because a reload replaces the cache.
 */
import { compileRetryPolicy, type RetryPolicy } from '../backoff/retry-policy.ts'
import type { Message } from '../mail/message.ts'
import { originsOfClass, originsUnder, settingsUnder, tableFor, type SettingOrigins, type Settings } from './destination-settings.ts'
import { MailClasses, type ClassBands, type FairShares, type TurnPolicies } from './values/mail-classes.ts'
import type { ClassTable } from './values/tables/class-table.ts'
import type { Config } from './options.ts'
import type { ProviderDirectory } from './provider-directory.ts'

/** Shared by all destinations to which the same tables apply. */
export interface DestinationPolicy {
  /** Heading of the table that applies; null when only the global parameters apply. */
  readonly table: string | null
  /** Name of the `[provider.NAME]` table that applies; null for none. */
  readonly provider: string | null
  readonly settings: Settings
  readonly origins: SettingOrigins
  readonly retry: RetryPolicy
}

/** The oldest name is dropped first. */
const MOST_CACHED_NAMES = 10_000

const NO_PROVIDERS: Pick<ProviderDirectory, 'of'> = { of: () => null }

export class DestinationPolicies implements TurnPolicies {
  readonly #config: Config
  readonly #providers: Pick<ProviderDirectory, 'of'>
  readonly classes: MailClasses
  readonly shares: FairShares | null
  /** Policies by provider and table. Their number does not depend on the number of destinations. */
  readonly #byTable = new Map<string | null, Map<string | null, DestinationPolicy>>()
  readonly #byName = new Map<string, DestinationPolicy>()
  /** Policies of classes with parameters, by the policy of other mail. */
  readonly #ofClasses = new Map<string, WeakMap<DestinationPolicy, DestinationPolicy>>()

  /** Without `providers`, no destination has a provider; without `shares`, deliveries are not shared fairly. */
  constructor(
    config: Config,
    providers: Pick<ProviderDirectory, 'of'> = NO_PROVIDERS,
    bands?: ClassBands,
    shares: FairShares | null = null,
  ) {
    this.shares = shares
    this.#config = config
    this.#providers = providers
    this.classes = new MailClasses(config.class, config.default_class, bands)
  }

  get providers(): Config['provider'] {
    return this.#config.provider
  }

  /** The policy of mail of a class at a destination: the parameters of the class come before all others. */
  forMail(destination: string, { class: name }: Pick<Message, 'class'>): DestinationPolicy {
    const policy = this.for(destination)
    const own = this.#config.class.get(this.classes.named(name).name)
    return own === undefined || Object.keys(own.settings).length === 0 ? policy : this.#ofClass(policy, own)
  }

  #ofClass(policy: DestinationPolicy, { name, settings: own }: ClassTable): DestinationPolicy {
    const known = this.#ofClasses.get(name) ?? new WeakMap<DestinationPolicy, DestinationPolicy>()
    this.#ofClasses.set(name, known)
    const found = known.get(policy)
    if (found !== undefined) return found
    const { delay_warning_time: _, ...given } = own
    const all: Settings = { ...policy.settings, ...given }
    const settings = { ...all, bounce_queue_lifetime: Math.min(all.bounce_queue_lifetime, all.maximal_queue_lifetime) }
    const origins = originsOfClass(policy.origins, { name, given, settings })
    const made = { ...policy, settings, origins, retry: retryOf(settings) }
    known.set(policy, made)
    return made
  }

  /** The policy of a destination, without the parameters of classes. Throws PolicyError for an invalid retry policy, which `loadConfig` would have refused. */
  for(destination: string): DestinationPolicy {
    const provider = this.#providerOf(destination)
    const known = this.#byName.get(destination)
    if (known?.provider === provider) return known
    const policy = this.#under(tableFor(this.#config, destination), provider)
    const [oldest] = this.#byName.size >= MOST_CACHED_NAMES ? this.#byName.keys() : []
    if (oldest !== undefined) this.#byName.delete(oldest)
    this.#byName.set(destination, policy)
    return policy
  }

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
    const policy = { table, provider, settings, origins: originsUnder(this.#config, table, provider), retry: retryOf(settings) }
    ofProvider.set(table, policy)
    return policy
  }
}

const retryOf = ({ retry_backoff, minimal_backoff_time: minimal, maximal_backoff_time: maximal }: Settings): RetryPolicy =>
  compileRetryPolicy({ retry_backoff, minimal, maximal })
