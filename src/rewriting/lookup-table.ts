/** Opens the lookup tables of a parameter. Tables are read once; a reload opens them again. */
import { errorMessage } from '../system/caught-error.ts'
import type { TableSource } from '../config/lookup-tables.ts'
import { parseTexthash } from './texthash.ts'

/** The lookup tables of one parameter, searched in their order. */
export interface LookupTable {
  /** Name of the parameter. */
  readonly name: string
  /** Value of a folded key in the first table that has it; undefined when none has. */
  readonly find: (key: string) => string | undefined
}

/** A lookup that has no usable result. The mail is refused for now (451), so that nothing is lost. */
export class LookupFailed extends Error {
  override readonly name: string = 'LookupFailed'
}

export interface OpenedTable {
  readonly table: LookupTable
  /** A sentence for each line of a file that is ignored. */
  readonly warnings: readonly string[]
}

/** Opens the tables of a parameter. Throws an Error that names parameter and path when a file cannot be read. */
export function openTable(name: string, sources: readonly TableSource[], readFile: (path: string) => string): OpenedTable {
  const warnings: string[] = []
  const finds = sources.map((source) => {
    if (source.kind === 'static') return () => source.value
    const entries = source.kind === 'inline' ? source.entries : fileEntries(name, source.path, { readFile, warnings })
    return (key: string) => entries.get(key)
  })
  const [only = () => undefined] = finds
  return { table: { name, find: finds.length < 2 ? only : (key) => firstOf(finds, key) }, warnings }
}

function firstOf(finds: readonly LookupTable['find'][], key: string): string | undefined {
  for (const find of finds) {
    const value = find(key)
    if (value !== undefined) return value
  }
  return undefined
}

function fileEntries(
  name: string,
  path: string,
  { readFile, warnings }: { readonly readFile: (path: string) => string; readonly warnings: string[] },
): ReadonlyMap<string, string> {
  try {
    const { entries, ignored } = parseTexthash(readFile(path))
    warnings.push(...ignored.map((text) => `${name}: ${path}, ${text}`))
    return entries
  } catch (cause) {
    throw new Error(`${name}: cannot read ${path}: ${errorMessage(cause)}`, { cause })
  }
}
