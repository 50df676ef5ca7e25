/** Opens the lookup tables of routes: transport_maps where it names tables, and those that are searched by the envelope sender. */
import type { Config } from '../../config/options.ts'
import { openTable, type LookupTable, type OpenedTable } from '../../rewriting/lookup-table.ts'
import { readText } from '../../rewriting/tables.ts'

/** Parameters that name lookup tables by sender. */
export const SENDER_TABLE_NAMES = ['sender_dependent_relayhost_maps', 'sender_dependent_default_transport_maps'] as const
type SenderTableName = (typeof SENDER_TABLE_NAMES)[number]

/** The tables by parameter. A parameter without tables is missing. */
export type RoutingTables = ReadonlyMap<SenderTableName | 'transport_maps', LookupTable>

interface OpenedRoutingTables {
  readonly tables: RoutingTables
  /** A sentence for each line of a file that is ignored. */
  readonly warnings: readonly string[]
}

/** Opens the tables. Throws an Error that names parameter and path when a file cannot be read. */
export function openRoutingTables(config: Pick<Config, SenderTableName | 'transport_tables'>): OpenedRoutingTables {
  const named = [...SENDER_TABLE_NAMES.map((name) => [name, config[name]] as const), ['transport_maps', config.transport_tables] as const]
  const opened = named
    .filter(([, sources]) => sources.length > 0)
    .map(([name, sources]): readonly [typeof name, OpenedTable] => [
      name,
      openTable(name, sources, { readFile: readText, substitutes: false }),
    ])
  return { tables: new Map(opened.map(([name, { table }]) => [name, table])), warnings: opened.flatMap(([, { warnings }]) => warnings) }
}
