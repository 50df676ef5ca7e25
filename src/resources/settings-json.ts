/** The parameters in effect, as texts of the configuration file without secrets, and the settings in which the nodes of a queue differ. */
import { z } from 'zod'
import { defaultConfig, type LoadedConfig } from '../config/load.ts'
import { OPTIONS, type OptionName } from '../config/options.ts'
import { textOrNull, type Json } from './members.ts'

const tables = z.record(z.string(), z.record(z.string(), z.string()))

const betweenNodesShape = z.object({
  differing: z.array(
    z.object({
      name: z.string().describe('a parameter, or a table with its member, such as `destination."gmail.com" smtp_tls_security_level`'),
      default: textOrNull.describe('null for a member of a table'),
      values: z.array(
        z.object({
          node: z.string(),
          value: textOrNull.describe('null at a node that does not set it; secrets and paths of URLs are masked'),
        }),
      ),
    }),
  ),
  unanswered: z.array(z.string()).describe('nodes that did not answer within a second, and are not compared'),
})

export const configurationShape = z
  .object({
    file: textOrNull,
    parameters: z.array(
      z.object({
        name: z.string(),
        value: z.string(),
        default: z.string(),
        given: z.boolean(),
        differs: z.boolean().describe('set, and not equal to the default'),
        where: z.string().describe('position such as `deferd.toml:12`, `environment` or `-o`; empty for a default'),
      }),
    ),
    transports: z.record(z.string(), z.string()).describe('entries of `[transport_maps]`'),
    destinations: tables,
    providers: tables.describe('`[provider.NAME]` tables'),
    dkim: tables,
    events: tables.describe('`[events.NAME]` tables, without secrets'),
    oauth: tables.describe('`[oauth.NAME]` tables'),
    schedules: tables.describe('`[schedule.NAME]` tables'),
    quotas: tables.describe('`[quota.NAME]` tables'),
    classes: tables.describe('`[class.NAME]` tables'),
  })
  .meta({ id: 'Configuration' })

export const settingsShape = configurationShape
  .extend({
    between_nodes: betweenNodesShape.nullable().describe('settings that all nodes should share; null for a queue in a folder'),
  })
  .meta({ id: 'Settings' })

type ConfigurationJson = Json<typeof configurationShape>
export type SettingsJson = Json<typeof settingsShape>
export type BetweenNodesJson = Json<typeof betweenNodesShape>

const NAMES = Object.keys(OPTIONS).toSorted() as OptionName[]

/** True when the value is set, and differs from the default. Defaults that refer to other parameters change with those. */
export const differs = (loaded: LoadedConfig, defaults: LoadedConfig, name: OptionName): boolean =>
  loaded.given.has(name) && JSON.stringify(loaded.config[name]) !== JSON.stringify(defaults.config[name])

const byHeading = (all: ReadonlyMap<string, ReadonlyMap<string, string>>) =>
  Object.fromEntries([...all].map(([heading, table]) => [heading, Object.fromEntries(table)]))

export function configurationJson(loaded: LoadedConfig): ConfigurationJson {
  const defaults = defaultConfig()
  return {
    file: loaded.file,
    parameters: NAMES.map((name) => ({
      name,
      value: loaded.written.get(name) ?? '',
      default: defaults.written.get(name) ?? '',
      given: loaded.given.has(name),
      differs: differs(loaded, defaults, name),
      where: loaded.given.has(name) ? loaded.whereOf(name) : '',
    })),
    transports: Object.fromEntries(loaded.config.transport_maps),
    destinations: byHeading(loaded.writtenTables),
    providers: byHeading(loaded.writtenProviders),
    dkim: byHeading(loaded.writtenDkim),
    events: byHeading(loaded.writtenEvents),
    oauth: byHeading(loaded.writtenOauth),
    schedules: byHeading(loaded.writtenSchedules),
    quotas: byHeading(loaded.writtenQuotas),
    classes: byHeading(loaded.writtenClasses),
  }
}

/** The settings of a node that differ from their defaults, by name: the value as it is shown, and a hash of the whole value. */
export type NodeSettings = Readonly<Record<string, { readonly value: string; readonly hash: string }>>

/** The settings in which nodes differ. `answers` has a node more than once when several have its name. */
export function betweenNodesJson(
  answers: readonly { readonly node: string; readonly settings: NodeSettings }[],
  unanswered: readonly string[],
): BetweenNodesJson {
  const defaults = defaultConfig().written
  const names = [...new Set(answers.flatMap(({ settings }) => Object.keys(settings)))].toSorted()
  const isDiffering = (name: string): boolean => new Set(answers.map(({ settings }) => settings[name]?.hash)).size > 1
  return {
    differing: names.filter(isDiffering).map((name) => {
      const initial = defaults.get(name as OptionName) ?? null
      return {
        name,
        default: initial,
        values: answers.map(({ node, settings }) => ({ node, value: settings[name]?.value ?? initial })),
      }
    }),
    unanswered,
  }
}
