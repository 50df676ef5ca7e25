/** Hash of the settings that all nodes of a queue should share: how mail is delivered, retried and reported, and to which programs. */
import { createHash } from 'node:crypto'
import { DELIVERY_OPTIONS } from '../../config/delivery-options.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { NOTICE_OPTIONS } from '../../config/notice-options.ts'
import type { OptionName } from '../../config/options.ts'
import { RETRY_OPTIONS } from '../../config/retry-options.ts'

/** Parameters whose values belong to a machine: its addresses, names and files. */
const OF_MACHINE = /_(?:file|path|maps|bind_address6?|helo_name)$/

const SHARED: readonly OptionName[] = [
  ...(Object.keys({ ...DELIVERY_OPTIONS, ...RETRY_OPTIONS, ...NOTICE_OPTIONS }) as OptionName[]).filter((name) => !OF_MACHINE.test(name)),
  'node_lease',
]

export function sharedSettings({ config, written, writtenTables, writtenProviders, writtenEvents, writtenOauth }: LoadedConfig): string {
  const hash = createHash('sha256')
  for (const name of SHARED.toSorted()) hash.update(`${name}=${written.get(name) ?? ''}\n`)
  const lines = [
    ...[...config.transport_maps].map(([key, target]) => JSON.stringify([key, target])),
    ...[...writtenTables].flatMap(([heading, table]) => [...table].map(([name, value]) => JSON.stringify([heading, name, value]))),
    ...[...writtenEvents].flatMap(([subscription, table]) =>
      [...table].map(([name, value]) =>
        JSON.stringify(['events', subscription, name, name === 'to' ? config.events.get(subscription)?.to : value]),
      ),
    ),
    ...[...writtenOauth].flatMap(([table, members]) =>
      [...members].flatMap(([name, value]) => (OF_MACHINE.test(name) ? [] : [JSON.stringify(['oauth', table, name, value])])),
    ),
    ...[...writtenProviders].flatMap(([provider, table]) =>
      [...table].map(([name, value]) => JSON.stringify(['provider', provider, name, value])),
    ),
  ]
  for (const line of lines.toSorted()) hash.update(`${line}\n`)
  return hash.digest('hex').slice(0, 12)
}
