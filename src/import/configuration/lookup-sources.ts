/** Reads the lookup tables that Postfix's parameters name (DATABASE_README): the text files from which postmap made the databases. */
import { parseTables } from '../../config/values/lookup-tables.ts'
import { foreignTable } from '../../config/values/postfix-parameters.ts'
import { parseTexthash } from '../../rewriting/texthash.ts'
import { errorMessage } from '../../system/caught-error.ts'

/** Files and programs of the machine that has Postfix. */
export interface PostfixFiles {
  /** The text of a file; null when it cannot be read. */
  readonly read: (path: string) => string | null
  /** Time of the last change of a file; null for a missing file. */
  readonly changedAt: (path: string) => number | null
  /** True for a file that not every user may read. */
  readonly isPrivate: (path: string) => boolean
  /** The value of a parameter by postconf -x, which knows the machine; null when that fails. */
  readonly computed: (configDirectory: string, name: string) => string | null
  /** The entries of a database by postmap -s, as lines of key and value; null when that fails. */
  readonly dump: (type: string, path: string) => string | null
}

export type LookupSource =
  /** A file of keys and values. `text` is its content; without the file, the content of the database. */
  | { readonly kind: 'file'; readonly path: string; readonly text: string; readonly isFile: boolean; readonly warning: string | null }
  /** A table written in the parameter itself. */
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'missing'; readonly text: string; readonly why: string }

/** Types that postmap makes from text files, with their file name extensions. */
const INDEXED: Readonly<Record<string, string>> = {
  hash: '.db',
  btree: '.db',
  dbm: '.pag',
  sdbm: '.pag',
  cdb: '.cdb',
  lmdb: '.lmdb',
  texthash: '',
}

/** The tables in an expanded value, and its other words. */
export function lookupSources(
  value: string,
  files: PostfixFiles,
): { readonly sources: readonly LookupSource[]; readonly words: readonly string[] } {
  const sources: LookupSource[] = []
  const words: string[] = []
  for (const member of membersOf(value)) {
    const [, type, rest = ''] = /^(?:proxy:)?([a-z]+):(.*)$/s.exec(member) ?? []
    if (type === undefined) words.push(member)
    else sources.push(sourceOf(member, type, { rest, files }))
  }
  return { sources, words }
}

/** The parts of a list between commas and blanks outside braces. */
export const membersOf = (value: string): readonly string[] => value.match(/(?:[^\s,{}]|\{(?:[^{}]|\{[^{}]*\})*\})+/g) ?? []

/** Types whose entries may be in the parameter itself. */
const LITERAL: ReadonlySet<string> = new Set(['inline', 'static', 'cidr', 'regexp', 'pcre'])

function sourceOf(member: string, type: string, { rest, files }: { readonly rest: string; readonly files: PostfixFiles }): LookupSource {
  const extension = INDEXED[type]
  if (extension !== undefined) return fileSource(type, rest, { extension, files })
  const isWritten = rest.startsWith('{')
  if ((type === 'regexp' || type === 'pcre') && !isWritten) return { kind: 'missing', text: member, why: whyNoPatterns(rest, files) }
  if (type === 'cidr' && !isWritten) return { kind: 'missing', text: member, why: `${rest} cannot be read, or is no file` }
  if (!LITERAL.has(type)) return { kind: 'missing', text: member, why: foreignTable(type) }
  try {
    const text = `${type}:${rest}`
    parseTables(text)
    return { kind: 'literal', text }
  } catch (error) {
    return { kind: 'missing', text: member, why: errorMessage(error) }
  }
}

/** The reason why a table of patterns is left out: deferd has patterns only for maps. */
function whyNoPatterns(path: string, files: PostfixFiles): string {
  return files.read(path) === null ? `${path} cannot be read` : 'deferd has no patterns there'
}

function fileSource(
  type: string,
  path: string,
  { extension, files }: { readonly extension: string; readonly files: PostfixFiles },
): LookupSource {
  const text = files.read(path)
  if (text !== null) return { kind: 'file', path, text, isFile: true, warning: staleness(path, extension, files) }
  const dumped = extension === '' ? null : files.dump(type, path)
  if (dumped !== null)
    return { kind: 'file', path, text: dumped, isFile: false, warning: `${path} does not exist, and was made from ${path}${extension}` }
  return { kind: 'missing', text: `${type}:${path}`, why: `${path} cannot be read` }
}

function staleness(path: string, extension: string, files: PostfixFiles): string | null {
  const [text, database] = [files.changedAt(path), extension === '' ? null : files.changedAt(`${path}${extension}`)]
  if (text === null || database === null || text <= database) return null
  return `${path} has changes that Postfix does not use, since postmap was not called`
}

/** The entries of tables by folded key. The first table with a key wins. */
export function entriesOf(sources: readonly LookupSource[]): ReadonlyMap<string, string> {
  const entries = new Map<string, string>()
  for (const source of sources) {
    for (const [key, value] of ownEntries(source)) if (!entries.has(key)) entries.set(key, value)
  }
  return entries
}

function ownEntries(source: LookupSource): ReadonlyMap<string, string> {
  if (source.kind === 'missing') return new Map()
  if (source.kind === 'file') return parseTexthash(source.text).entries
  return new Map(parseTables(source.text).flatMap((table) => (table.kind === 'inline' ? [...table.entries] : [])))
}

/** The value of a table that answers all keys alike; null without one. */
export function staticValue(sources: readonly LookupSource[]): string | null {
  const literals = sources.flatMap((source) => (source.kind === 'literal' ? parseTables(source.text) : []))
  return literals.find((table) => table.kind === 'static')?.value ?? null
}
