/** The parameters in effect, as texts of the configuration file. */
import { z } from 'zod'
import { defaultConfig, type LoadedConfig } from '../config/load.ts'
import { OPTIONS, type OptionName } from '../config/options.ts'
import { textOrNull, type Json } from './members.ts'

const tables = z.record(z.string(), z.record(z.string(), z.string()))

export const configurationShape = z
  .object({
    file: textOrNull,
    parameters: z.array(z.object({ name: z.string(), value: z.string(), default: z.string(), given: z.boolean() })),
    destinations: tables,
    dkim: tables,
    events: tables.describe('`[events.NAME]` tables, without secrets'),
    oauth: tables.describe('`[oauth.NAME]` tables'),
  })
  .meta({ id: 'Configuration' })

const NAMES = Object.keys(OPTIONS).toSorted() as OptionName[]

const byHeading = (all: ReadonlyMap<string, ReadonlyMap<string, string>>) =>
  Object.fromEntries([...all].map(([heading, table]) => [heading, Object.fromEntries(table)]))

export function configurationJson(loaded: LoadedConfig): Json<typeof configurationShape> {
  const { written, writtenTables, writtenDkim, writtenEvents, writtenOauth, given, file } = loaded
  const defaults = defaultConfig().written
  return {
    file,
    parameters: NAMES.map((name) => ({
      name,
      value: written.get(name) ?? '',
      default: defaults.get(name) ?? '',
      given: given.has(name),
    })),
    destinations: byHeading(writtenTables),
    dkim: byHeading(writtenDkim),
    events: byHeading(writtenEvents),
    oauth: byHeading(writtenOauth),
  }
}
