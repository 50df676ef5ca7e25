/**
 * What holds for one destination: the global parameters, overridden by the most telling `[destination."…"]` table:
 * exact domain, parent domains longest first, next hop. Also says which table decided, for `queue show`.
 */
import { domainMatches, lookupKeys } from '../mail/address.ts'
import { OPTIONS, type Config, type DestinationSettings, type OptionName } from './options.ts'

type SettingName = keyof DestinationSettings

/** Every per-destination parameter with its effective value; names as in a destination table. */
export type Settings = { readonly [K in SettingName]-?: Exclude<DestinationSettings[K], undefined> }

export interface EffectiveSettings {
  readonly values: Settings
  /** The heading of the table that was applied; null when only the global parameters hold. */
  readonly table: string | null
}

const globalNames = new Map<SettingName, OptionName>()
for (const [name, option] of Object.entries(OPTIONS)) {
  if (option.perDestination) globalNames.set(name.replace(/^default_/, '') as SettingName, name as OptionName)
}

/** The name of a per-destination parameter as it stands outside of tables: `default_…` where Postfix has it so. */
export const globalNameOf = (name: SettingName): OptionName => globalNames.get(name) ?? (name as OptionName)

/** Does the domain have a table of its own, which makes it a destination of its own also behind a relayhost? */
export function ownTable(config: Pick<Config, 'destination'>, domain: string): string | null {
  for (const key of lookupKeys(domain)) if (key !== '*' && config.destination.has(key) && domainMatches(domain, key)) return key
  return null
}

/** By table and not by destination: ten thousand destinations share the few there are. */
const compiled = new WeakMap<Config, Map<string | null, EffectiveSettings>>()

/** The settings for mail to `domain` that goes by way of `destination`. */
export function settingsFor(config: Config, domain: string, destination: string): EffectiveSettings {
  const table = ownTable(config, domain) ?? (config.destination.has(destination) ? destination : null)
  const tables = compiled.get(config) ?? new Map<string | null, EffectiveSettings>()
  compiled.set(config, tables)
  const settings = tables.get(table) ?? compile(config, table)
  tables.set(table, settings)
  return settings
}

function compile(config: Config, table: string | null): EffectiveSettings {
  const overrides: DestinationSettings = table === null ? {} : (config.destination.get(table) ?? {})
  const values: Partial<Record<SettingName, unknown>> = {}
  for (const [name, globalName] of globalNames) values[name] = overrides[name] ?? config[globalName]
  return { values: values as Settings, table }
}
