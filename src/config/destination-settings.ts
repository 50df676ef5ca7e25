/**
 * Parameters of one destination: the global parameters, overridden by the `[provider.NAME]` table of its provider and by a
 * `[destination."…"]` table. For a recipient domain, the table of the domain itself is used, else the table of its longest parent domain. A
 * next hop has the table with its name, with or without the transport (destination-headings.ts).
 */
import { domainMatches, lookupKeys } from '../mail/address.ts'
import { headingsOf } from './destination-headings.ts'
import { OPTIONS, type Config, type DestinationSettings, type OptionName } from './options.ts'

export type SettingName = keyof DestinationSettings

/** Every per-destination parameter with its effective value; names as in a destination table. */
export type Settings = { readonly [K in SettingName]-?: Exclude<DestinationSettings[K], undefined> }

const globalNames = new Map<SettingName, OptionName>()
for (const [name, option] of Object.entries(OPTIONS)) {
  if (option.perDestination) globalNames.set(name.replace(/^default_/, '') as SettingName, name as OptionName)
}

/** Global name of a per-destination parameter, with `default_` where Postfix has that prefix. */
export const globalNameOf = (name: SettingName): OptionName => globalNames.get(name) ?? (name as OptionName)

/**
 * Heading of the table of a recipient domain; null when none applies. A domain with a table is a destination of its own, even
 * when its mail is sent to a relayhost.
 */
export function ownTable(config: Pick<Config, 'destination'>, domain: string): string | null {
  if (config.destination.size === 0) return null
  for (const key of lookupKeys(domain)) if (key !== '*' && config.destination.has(key) && domainMatches(domain, key)) return key
  return null
}

/** Heading of the table that applies to a destination; null when only the global parameters apply. */
export function tableFor(config: Pick<Config, 'destination' | 'smtp_tcp_port'>, destination: string): string | null {
  const named = headingsOf(destination, config).find((heading) => config.destination.has(heading))
  if (named !== undefined) return named
  // A name with a transport, such as `smtp:a.example,b.example`, is not a domain and has no parent domains.
  return destination.includes(':') ? null : ownTable(config, destination)
}

/**
 * Effective parameters of a destination with the provider and the table: the parameters of the table, then of the provider, then the global
 * ones. `table` and `provider` are null for none.
 */
export function settingsUnder(config: Config, table: string | null, provider: string | null = null): Settings {
  const overrides: DestinationSettings = table === null ? {} : (config.destination.get(table) ?? {})
  const shared: DestinationSettings = provider === null ? {} : (config.provider.get(provider)?.settings ?? {})
  const values: Partial<Record<SettingName, unknown>> = {}
  for (const [name, globalName] of globalNames) values[name] = overrides[name] ?? shared[name] ?? config[globalName]
  return values as Settings
}

/** The table that sets a parameter, as it is written, by parameter; without the global ones. */
export type SettingOrigins = ReadonlyMap<SettingName, string>

/** The origins of the values that `settingsUnder` returns. */
export function originsUnder(config: Config, table: string | null, provider: string | null): SettingOrigins {
  const origins = new Map<SettingName, string>()
  if (provider !== null) noteOrigins(origins, config.provider.get(provider)?.settings, `[provider.${provider}]`)
  if (table !== null) noteOrigins(origins, config.destination.get(table), `[destination."${table}"]`)
  return withBounceOrigin(origins, settingsUnder(config, table, provider))
}

/** The origins of the values of a class, which come before those of destinations. */
export function originsOfClass(
  origins: SettingOrigins,
  { name, given, settings }: { readonly name: string; readonly given: DestinationSettings; readonly settings: Settings },
): SettingOrigins {
  const all = new Map(origins)
  noteOrigins(all, given, `[class.${name}]`)
  return withBounceOrigin(all, settings)
}

function noteOrigins(origins: Map<SettingName, string>, table: DestinationSettings = {}, heading: string): void {
  for (const [name, value] of Object.entries(table)) if (value !== undefined) origins.set(name as SettingName, heading)
}

/** bounce_queue_lifetime is at most maximal_queue_lifetime, which another table may set. */
function withBounceOrigin(origins: Map<SettingName, string>, settings: Settings): SettingOrigins {
  if (settings.bounce_queue_lifetime !== settings.maximal_queue_lifetime) return origins
  const origin = origins.get('maximal_queue_lifetime')
  return origin === undefined ? origins : origins.set('bounce_queue_lifetime', origin)
}
