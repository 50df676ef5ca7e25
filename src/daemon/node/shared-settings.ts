/** Settings that all nodes of a queue should share: how mail is delivered, retried and reported, and to which programs. */
import { createHash } from 'node:crypto'
import { DELIVERY_OPTIONS } from '../../config/delivery-options.ts'
import { defaultConfig, type LoadedConfig } from '../../config/load.ts'
import { NOTICE_OPTIONS } from '../../config/notice-options.ts'
import type { OptionName } from '../../config/options.ts'
import { QUEUE_LIMIT_OPTIONS } from '../../config/smtpd-options.ts'
import { RETRY_OPTIONS } from '../../config/retry-options.ts'

/** Parameters whose values belong to a machine: its addresses, names and files. */
const OF_MACHINE = /_(?:CAfile|CApath|file|path|maps|bind_address6?|helo_name)$/

const SHARED: readonly OptionName[] = [
  ...(Object.keys({ ...DELIVERY_OPTIONS, ...RETRY_OPTIONS, ...NOTICE_OPTIONS, ...QUEUE_LIMIT_OPTIONS }) as OptionName[]).filter(
    (name) => !OF_MACHINE.test(name),
  ),
  'node_lease',
]

/**
 * The given settings by name, each with a hash of its value, as JSON. A value with the host name is hashed without it, because each node has
 * its own `myhostname`.
 */
export function sharedSettings(loaded: LoadedConfig): string {
  const values = new Map(shared(loaded))
  const hashes = [...values.keys()].toSorted().map((name) => {
    const value = values.get(name) ?? ''
    return [name, hashOf(value.replaceAll(loaded.config.myhostname, '$myhostname'))]
  })
  return JSON.stringify(Object.fromEntries(hashes))
}

const hashOf = (value: string): string => createHash('sha256').update(value).digest('hex').slice(0, 8)

function* shared(loaded: LoadedConfig): Generator<readonly [name: string, value: string]> {
  const { config, written, writtenTables, writtenProviders, writtenEvents, writtenOauth, writtenSchedules } = loaded
  const defaults = defaultConfig().written
  for (const name of SHARED) {
    const value = written.get(name) ?? ''
    if (value !== defaults.get(name)) yield [name, value]
  }
  for (const [key, target] of config.transport_maps) yield [`transport_maps ${key}`, JSON.stringify(target)]
  yield* members('destination', writtenTables, (_, value) => value)
  yield* members('provider', writtenProviders, (_, value) => value)
  // Two URLs may differ in their paths, which are not written.
  yield* members('events', writtenEvents, (table, value, name) => (name === 'to' ? (config.events.get(table)?.to ?? '') : value))
  yield* members('oauth', writtenOauth, (_, value, name) => (OF_MACHINE.test(name) ? null : value))
  yield* members('schedule', writtenSchedules, (_, value) => value)
}

/** The members of tables with the value that `valueOf` has for each; without those for which it is null. */
function* members(
  kind: string,
  tables: ReadonlyMap<string, ReadonlyMap<string, string>>,
  valueOf: (table: string, value: string, name: string) => string | null,
): Generator<readonly [name: string, value: string]> {
  for (const [table, written] of tables)
    for (const [name, given] of written) {
      const value = valueOf(table, given, name)
      if (value !== null) yield [`${kind}.${JSON.stringify(table)} ${name}`, value]
    }
}
