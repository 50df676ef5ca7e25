/** Opens the lookup tables that are searched by the envelope sender. */
import type { Config } from '../../config/options.ts'
import { openTable, type LookupTable } from '../../rewriting/lookup-table.ts'
import { readText } from '../../rewriting/tables.ts'

/** Parameters that name lookup tables by sender. */
export const SENDER_TABLE_NAMES = ['sender_dependent_relayhost_maps', 'sender_dependent_default_transport_maps'] as const
export type SenderTableName = (typeof SENDER_TABLE_NAMES)[number]

/** The tables by parameter. A parameter without tables is missing. */
export type SenderTables = ReadonlyMap<SenderTableName, LookupTable>

export interface OpenedSenderTables {
  readonly tables: SenderTables
  /** A sentence for each line of a file that is ignored. */
  readonly warnings: readonly string[]
}

/** Opens the tables. Throws an Error that names parameter and path when a file cannot be read. */
export function openSenderTables(config: Pick<Config, SenderTableName>): OpenedSenderTables {
  const used = SENDER_TABLE_NAMES.filter((name) => config[name].length > 0)
  const opened = used.map((name) => [name, openTable(name, config[name], { readFile: readText, substitutes: false })] as const)
  return { tables: new Map(opened.map(([name, { table }]) => [name, table])), warnings: opened.flatMap(([, { warnings }]) => warnings) }
}
