/** Settings that all nodes of a queue should share: how mail is delivered, retried and reported, and to which programs. */
import { CLASS_OPTIONS } from '../../config/values/tables/class-options.ts'
import { SHARE_OPTIONS } from '../../config/values/tables/share-options.ts'
import { createHash } from 'node:crypto'
import { DELIVERY_OPTIONS } from '../../config/options/delivery-options.ts'
import { defaultConfig, type LoadedConfig } from '../../config/load.ts'
import { NOTICE_OPTIONS } from '../../config/options/notice-options.ts'
import type { OptionName } from '../../config/options.ts'
import { QUEUE_LIMIT_OPTIONS } from '../../config/options/smtpd-options.ts'
import { RETRY_OPTIONS } from '../../config/options/retry-options.ts'
import type { NodeParameters } from '../../store/membership/node-table.ts'
import type { NodeSettings } from '../../resources/settings-json.ts'

/** Parameters whose values belong to a machine: its addresses, names and files. */
const OF_MACHINE = /_(?:CAfile|CApath|file|path|maps|bind_address6?|helo_name)$/

const SHARED: readonly OptionName[] = [
  ...(
    Object.keys({
      ...DELIVERY_OPTIONS,
      ...RETRY_OPTIONS,
      ...NOTICE_OPTIONS,
      ...QUEUE_LIMIT_OPTIONS,
      ...CLASS_OPTIONS,
      ...SHARE_OPTIONS,
    }) as OptionName[]
  ).filter((name) => !OF_MACHINE.test(name)),
  'node_lease',
]

/**
 * The given settings by name, each with a hash of its value, as JSON. A value with the host name is hashed without it, because each node has
 * its own `myhostname`.
 */
const sharedSettings = (loaded: LoadedConfig): string =>
  JSON.stringify(Object.fromEntries(Object.entries(nodeSettings(loaded)).map(([name, { hash }]) => [name, hash])))

/** The parameters that this node tells the others. */
export const nodeParameters = (loaded: LoadedConfig): NodeParameters => ({
  settings: sharedSettings(loaded),
  hostname: loaded.config.myhostname,
})

/** The given settings with the values that operators may see, in the order of their names. */
export function nodeSettings(loaded: LoadedConfig): NodeSettings {
  const sorted = [...shared(loaded)].toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)))
  const compared = (value: string): string => hashOf(value.replaceAll(loaded.config.myhostname, '$myhostname'))
  return Object.fromEntries(sorted.map(([name, value, whole = value]) => [name, { value, hash: compared(whole) }]))
}

const hashOf = (value: string): string => createHash('sha256').update(value).digest('hex').slice(0, 8)

/** `whole` is a value that is not shown. */
type Setting = readonly [name: string, value: string, whole?: string]

function* shared(loaded: LoadedConfig): Generator<Setting> {
  const { config, written, writtenTables, writtenProviders, writtenEvents, writtenOauth, writtenSchedules, writtenQuotas, writtenClasses } =
    loaded
  const defaults = defaultConfig().written
  for (const name of SHARED) {
    const value = written.get(name) ?? ''
    if (value !== defaults.get(name)) yield [name, value]
  }
  for (const [key, target] of config.transport_maps) yield [`transport_maps ${key}`, JSON.stringify(target)]
  yield* members('destination', writtenTables)
  yield* members('provider', writtenProviders)
  // Two URLs may differ in their paths, which are not written.
  yield* members('events', writtenEvents, (table, name) => (name === 'to' ? config.events.get(table)?.to : undefined))
  yield* members('oauth', writtenOauth)
  yield* members('schedule', writtenSchedules)
  yield* members('quota', writtenQuotas)
  yield* members('class', writtenClasses)
}

/** The members of tables, of `[oauth.NAME]` without files of the machine. `wholeOf` has the values that are not shown. */
function* members(
  kind: string,
  tables: ReadonlyMap<string, ReadonlyMap<string, string>>,
  wholeOf: (table: string, name: string) => string | undefined = () => undefined,
): Generator<Setting> {
  for (const [table, written] of tables)
    for (const [name, value] of written)
      if (kind !== 'oauth' || !OF_MACHINE.test(name))
        yield [`${kind}.${JSON.stringify(table)} ${name}`, value, wholeOf(table, name) ?? value]
}
