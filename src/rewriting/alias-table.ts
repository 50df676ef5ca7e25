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

/**
 * Opens the tables. Throws an Error that names the alias or the path when one cannot be used, also for an alias with more addresses than
 * `limit` (virtual_alias_expansion_limit): all mail to it would be refused.
 */
export function openAliasTable(sources: readonly TableSource[], readFile: ReadFile, limit: number): OpenedTable {
  const warnings: string[] = []
  const resolved = (name: string, value: string): string => resolve(name, value, { readFile, limit })
  const accept = (result: ResultText): ResultText => parseResult(resolved('of a pattern', constantOf(result) ?? '').replaceAll('$', '$$$$'))
  const lists = sources.map((source): TableSource => {
    if (isPatterns(source) || source.kind === 'cidr') return source
    if (source.kind === 'static') return { kind: 'static', value: resolved('*', source.value) }
    const entries = source.kind === 'inline' ? source.entries : fileEntries(source.path, readFile, warnings)
    return { kind: 'inline', entries: new Map([...entries].map(([name, value]) => [name, resolved(name, value)])) }
  })
  const { find } = openTable('alias_maps', lists, { readFile, substitutes: false, accept }).table
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
function resolve(name: string, value: string, { readFile, limit }: { readonly readFile: ReadFile; readonly limit: number }): string {
  const addresses: string[] = []
  for (const { item, path } of itemsWithFiles(value, readFile)) {
    addresses.push(...addressesOf(name, item))
    if (addresses.length <= limit) continue
    const source = path === null ? '' : `, with those of ${path}`
    throw new Error(
      `alias_maps: the alias ${name} has more than ${limit} addresses${source}: virtual_alias_expansion_limit refuses all its mail; shorten the list, or raise the limit`,
    )
  }
  if (addresses.length === 0) throw new Error(`alias_maps: the alias ${name} has no address; write one, or remove the alias`)
  return addresses.join(', ')
}

interface Item {
  readonly item: string
  /** The file that has the item; null for an item of the alias itself. */
  readonly path: string | null
}

/** The items of an alias. In the place of an `:include:` are the items of its file: lists of addresses, and comments that begin with `#`. */
function* itemsWithFiles(value: string, readFile: ReadFile): Generator<Item> {
  for (const item of items(value)) {
    const path = /^:include:\s*(.+)$/.exec(item)?.[1]
    if (path === undefined) yield { item, path: null }
    else
      for (const line of contentOf(path, readFile)
        .split('\n')
        .filter((text) => !/^\s*(?:#|$)/.test(text))) {
        for (const one of items(line)) yield { item: one, path }
      }
  }
}

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
