/** Opens the lookup tables of all parameters for addresses. */
import { readFileSync } from 'node:fs'
import type { Config } from '../config/options.ts'
import type { TableSource } from '../config/values/lookup-tables.ts'
import { openAliasTable } from './alias-table.ts'
import { openTable, type LookupTable, type OpenedTable } from './lookup-table.ts'

/** Parameters that name lookup tables. */
export const TABLE_NAMES = [
  'canonical_maps',
  'sender_canonical_maps',
  'recipient_canonical_maps',
  'virtual_alias_maps',
  'alias_maps',
  'sender_bcc_maps',
  'recipient_bcc_maps',
  'smtp_generic_maps',
] as const
export type TableName = (typeof TABLE_NAMES)[number]

/** The tables by parameter. A parameter without tables is missing. */
export type Tables = ReadonlyMap<TableName, LookupTable>

interface OpenedTables {
  readonly tables: Tables
  /** A sentence for each line of a file that is ignored. */
  readonly warnings: readonly string[]
}

/** Opens the tables. Throws an Error that names parameter and path when a file cannot be read. */
export function openTables(config: Pick<Config, TableName | 'virtual_alias_expansion_limit'>): OpenedTables {
  const opened = TABLE_NAMES.filter((name) => config[name].length > 0).map((name) => openNamed(name, config[name], config))
  return {
    tables: new Map(opened.map(({ table }) => [table.name as TableName, table])),
    warnings: opened.flatMap(({ warnings }) => warnings),
  }
}

/** Opens the tables of one parameter. Throws an Error that names parameter and path when a file cannot be read. */
export const openNamed = (
  name: string,
  sources: readonly TableSource[],
  { virtual_alias_expansion_limit: limit }: Pick<Config, 'virtual_alias_expansion_limit'>,
): OpenedTable =>
  name === 'alias_maps' ? openAliasTable(sources, readText, limit) : openTable(name, sources, { readFile: readText, substitutes: true })

export const readText = (path: string): string => readFileSync(path, 'utf8')
