/** The configuration in the syntax of the file, as `deferd config` prints it: with units and expanded references, without secrets. */
import { globalNameOf, type SettingName } from './destination-settings.ts'
import { asText, isOption, type Expansion } from './expansion.ts'
import { OPTIONS, type OptionName } from './options.ts'
import { withoutPassword } from './values/database-url.ts'
import { shownValue } from './values/tables/event-tables.ts'
import type { RawSettings, RawValue } from './values/sources.ts'
import { flag, withUnit, type TimeUnit } from './values/values.ts'

export interface WrittenTables {
  /** transport_maps, when it is not a TOML table; empty otherwise. */
  readonly writtenTransports: string
  /** Parameters of the `[destination."…"]` tables, by heading. */
  readonly writtenTables: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The `[provider.NAME]` tables, by name. */
  readonly writtenProviders: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The `[dkim."…"]` tables, by heading. */
  readonly writtenDkim: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The `[events.NAME]` tables by name, without secrets and without the paths of URLs. */
  readonly writtenEvents: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The `[oauth.NAME]` tables, by name. */
  readonly writtenOauth: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The `[schedule.NAME]` tables, by name. */
  readonly writtenSchedules: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The `[quota.NAME]` tables, by name. */
  readonly writtenQuotas: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** The `[class.NAME]` tables, by name. */
  readonly writtenClasses: ReadonlyMap<string, ReadonlyMap<string, string>>
}

export const writtenTables = (raw: RawSettings, expansion: Expansion): WrittenTables => ({
  writtenTransports: raw.transportTables === null ? '' : asText(raw.transportTables.value),
  writtenTables: new Map([...raw.destinations].map(([heading, table]) => [heading, writeTable(table, expansion)])),
  writtenProviders: new Map([...raw.providers].map(([name, table]) => [name, writeTable(table, expansion)])),
  writtenDkim: new Map([...raw.dkim].map(([heading, table]) => [heading, writeRaw(table)])),
  writtenEvents: new Map([...raw.events].map(([name, table]) => [name, writeEvents(table)])),
  writtenOauth: new Map([...raw.oauth].map(([name, table]) => [name, writeRaw(table)])),
  writtenSchedules: new Map([...raw.schedules].map(([name, table]) => [name, writeRaw(table)])),
  writtenQuotas: new Map([...raw.quotas].map(([name, table]) => [name, writeRaw(table)])),
  writtenClasses: new Map([...raw.classes].map(([name, table]) => [name, writeTable(table, expansion)])),
})

/** A value as `deferd config` prints it: yes or no for a flag, times with their unit, and passwords masked. */
export function writtenAs(name: OptionName, text: string): string {
  if (name === 'queue_database') return withoutPassword(text)
  if (OPTIONS[name].kind === flag) {
    const read = flag(text)
    return 'value' in read && read.value ? 'yes' : 'no'
  }
  const { unit } = OPTIONS[name].kind as { readonly unit?: TimeUnit }
  return unit === undefined ? text : withUnit(text, unit)
}

const writeTable = (table: ReadonlyMap<string, RawValue>, expansion: Expansion): ReadonlyMap<string, string> =>
  new Map(
    [...table].map(([name, given]) => {
      const option = globalNameOf(name as SettingName)
      return [name, isOption(option) ? writtenAs(option, asText(expansion.expand(given))) : asText(given.value)]
    }),
  )

const writeEvents = (table: ReadonlyMap<string, RawValue>): ReadonlyMap<string, string> =>
  new Map([...table].map(([name, { value }]) => [name, shownValue(name, asText(value))]))

const writeRaw = (table: ReadonlyMap<string, RawValue>): ReadonlyMap<string, string> =>
  new Map([...table].map(([name, { value }]) => [name, asText(value)]))
