/**
 * Opens alias_maps (Postfix aliases(5)): names of local users with lists of addresses and `:include:/path`. Lines of files may have
 * a colon after the name. Files are read at once, so that a missing one is noticed at the start. Commands and files as
 * destinations are refused.
 */
import { errorMessage } from '../system/caught-error.ts'
import { isPatterns, type TableSource } from '../config/values/lookup-tables.ts'
import { addressesIn } from '../mail/address-list.ts'
import { constantOf, parseResult, type ResultText } from '../patterns/result-text.ts'
import { openTable, type OpenedTable } from './lookup-table.ts'
import { parseTexthash } from './texthash.ts'

type ReadFile = (path: string) => string

/** Opens the tables. Throws an Error that names the alias or the path when one cannot be used. */
export function openAliasTable(sources: readonly TableSource[], readFile: ReadFile): OpenedTable {
  const warnings: string[] = []
  const accept = (result: ResultText): ResultText =>
    parseResult(resolve('of a pattern', constantOf(result) ?? '', readFile).replaceAll('$', '$$$$'))
  const resolved = sources.map((source): TableSource => {
    if (isPatterns(source)) return source
    if (source.kind === 'static') return { kind: 'static', value: resolve('*', source.value, readFile) }
    const entries = source.kind === 'inline' ? source.entries : fileEntries(source.path, readFile, warnings)
    return { kind: 'inline', entries: new Map([...entries].map(([name, value]) => [name, resolve(name, value, readFile)])) }
  })
  const { find } = openTable('alias_maps', resolved, { readFile, substitutes: false, accept }).table
  // Names of aliases are local parts; addresses and domains are never looked up.
  return { table: { name: 'alias_maps', find: (key) => (key.includes('@') ? undefined : find(key, key)) }, warnings }
}

function fileEntries(path: string, readFile: ReadFile, warnings: string[]): ReadonlyMap<string, string> {
  const { entries, ignored } = parseTexthash(contentOf(path, readFile))
  warnings.push(...ignored.map((text) => `alias_maps: ${path}, ${text}`))
  return new Map([...entries].map(([name, value]) => [name.replace(/:$/, ''), value.replace(/^:\s+/, '')]))
}

function contentOf(path: string, readFile: ReadFile): string {
  try {
    return readFile(path)
  } catch (cause) {
    throw new Error(`alias_maps: cannot read ${path}: ${errorMessage(cause)}`, { cause })
  }
}

/** The addresses of an alias as a list, with those of its files. */
function resolve(name: string, value: string, readFile: ReadFile): string {
  const addresses = items(value).flatMap((item) => {
    const path = /^:include:\s*(.+)$/.exec(item)?.[1]
    return path === undefined ? addressesOf(name, item) : included(name, contentOf(path, readFile))
  })
  if (addresses.length === 0) throw new Error(`alias_maps: the alias ${name} has no address; write one, or remove the alias`)
  return addresses.join(', ')
}

/** The addresses of a file: lists of addresses, comments that begin with `#`. */
const included = (name: string, text: string): readonly string[] =>
  text
    .split('\n')
    .filter((line) => !/^\s*(?:#|$)/.test(line))
    .flatMap((line) => items(line).flatMap((item) => addressesOf(name, item)))

/** The items of a list between commas outside quotes, without quotes around them. */
const items = (list: string): readonly string[] =>
  (list.match(/(?:"(?:[^"\\]|\\.)*"|[^,"])+/g) ?? [])
    .map((item) => item.trim().replace(/^"([|/:].*)"$/s, '$1'))
    .filter((item) => item !== '')

function addressesOf(name: string, item: string): readonly string[] {
  refuseOthers(name, item, item)
  return addressesIn(item).map(({ address, text }) => {
    refuseOthers(name, item, text)
    if (address !== null) return address
    throw new Error(`alias_maps: the alias ${name} has ${JSON.stringify(text)}, which is not an address; correct it`)
  })
}

/** Throws an Error for a destination that is no address, in braces, brackets and quotes too. */
function refuseOthers(name: string, item: string, text: string): void {
  const [, first, inDomain] = /^[\s{<"']*([|/:])|@[^@"|/]*([|/])/.exec(text) ?? []
  const sign = first ?? inDomain
  if (sign === undefined) return
  const kind = sign === '|' ? 'a command' : sign === '/' ? 'a file' : 'a list'
  throw new Error(`alias_maps: the alias ${name} has ${kind} (${item}), to which deferd does not deliver; name an address, or remove it`)
}
