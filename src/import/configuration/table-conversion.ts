/** Converts parameters that name lookup tables. */
import { basename, dirname, join } from 'node:path'
import { parseTables } from '../../config/values/lookup-tables.ts'
import { openAliasTable } from '../../rewriting/alias-table.ts'
import { errorMessage } from '../../system/caught-error.ts'
import type { ConfigurationDraft } from './configuration-draft.ts'
import { logicalLines } from './main-cf.ts'
import { commentedOut, patternPath, usableRules } from './pattern-conversion.ts'
import { lookupSources, type LookupSource, type PostfixFiles } from './lookup-sources.ts'

export interface TableContext {
  readonly draft: ConfigurationDraft
  readonly files: PostfixFiles
  /** Folder of main.cf. Tables in it are copied, so that they outlive Postfix; tables elsewhere stay in place. */
  readonly configDirectory: string
  /** Returns a text without the entries that deferd cannot use; all are used when absent. */
  readonly usable?: ((text: string) => string) | undefined
  /** Throws an Error for a result of patterns or networks that cannot be used. */
  readonly verify?: ((result: string) => void) | undefined
}

/** The tables of a value in deferd's syntax. Tables that deferd cannot read become comments. */
export function convertedTables(name: string, value: string, context: TableContext): readonly string[] {
  const { sources, words } = lookupSources(value, context.files)
  for (const word of words) context.draft.note(`${name}: ${word} is no lookup table`)
  return sources.flatMap((source) => tableOf(name, source, context) ?? [])
}

/** Sets a parameter to its tables. Tables that deferd cannot read become comments. */
export function convertTables(name: string, value: string, context: TableContext): void {
  const tables = convertedTables(name, value, context)
  if (tables.length > 0) context.draft.set(name, tables)
}

/** The table in deferd's syntax; null when it is left out. */
function tableOf(name: string, source: LookupSource, context: TableContext): string | null {
  const { draft } = context
  const patterns = source.kind === 'missing' ? patternTable(name, source.text, context) : null
  if (patterns !== null) return patterns
  if (source.kind === 'missing') return (draft.note(`${name}: ${source.text} is left out: ${source.why}`), null)
  if (source.kind === 'literal') return usableLiteral(source.text, context)
  const text = name === 'alias_maps' ? usableAliases(source.text, context) : (context.usable?.(source.text) ?? source.text)
  if (source.warning !== null) draft.note(`${name}: ${source.warning}`)
  const isUnchanged = source.isFile && text === source.text
  return `texthash:${placed(source.path, text, isUnchanged, context)}`
}

/** A table in the parameter itself, without the entries that deferd cannot use. */
function usableLiteral(text: string, { usable }: TableContext): string | null {
  const [table] = parseTables(text)
  if (usable === undefined || table?.kind !== 'inline') return text
  const kept = [...table.entries].filter(([key, value]) => usable(`${key} ${value}`).startsWith(key))
  if (kept.length === table.entries.size) return text
  return kept.length === 0 ? null : `inline:{${kept.map(([key, value]) => `{${key} = ${value}}`).join(', ')}}`
}

/** A table of patterns or networks in deferd's syntax; null for any other table, and for an unreadable file. */
function patternTable(name: string, table: string, context: TableContext): string | null {
  const { draft, files, verify } = context
  const found = patternPath(table)
  const text = found === null ? null : files.read(found.path)
  if (found === null || text === null) return null
  const usable = usableRules({ name, ...found, text, verify })
  for (const reason of usable.reasons) draft.note(`${reason.replace(/; [^;]*$/, '')}: it is left out`)
  return `${found.kind}:${placed(found.path, usable.text, usable.text === text, context)}`
}

const isBelow = (path: string, folder: string): boolean => dirname(path) === folder || path.startsWith(`${folder}/`)

/** Adds a certificate, key or template beside deferd.toml when it would be lost with Postfix, or when the daemon may not read it. Returns its path. */
export function keptFile(path: string, context: TableContext): string {
  const text = context.files.read(path)
  return text === null ? path : placed(path, text, true, context)
}

/** Path of a file: its own, or that of a copy when its text has changed, when it would be lost with Postfix, or when the daemon may not read it. */
function placed(path: string, text: string, isUnchanged: boolean, { draft, files, configDirectory }: TableContext): string {
  const isPrivate = files.isPrivate(path)
  const isLost = isBelow(path, configDirectory)
  if (isUnchanged && !isLost && !isPrivate) return path
  const copy = addTable(path, text, draft, isPrivate || text.includes('PRIVATE KEY-----') ? 0o600 : undefined)
  if (isPrivate && !isLost) draft.note(`${path} is copied to ${copy}, as the daemon may not read it: copy it again when it changes`)
  return copy
}

/** Adds a file beside deferd.toml, and returns its path. When the name is taken, it gets the name of its folder, too. */
export function addTable(source: string, text: string, draft: ConfigurationDraft, mode?: number): string {
  const path = [basename(source), `${basename(dirname(source))}-${basename(source)}`]
    .map((name) => join(draft.folder, name))
    .find((candidate) => (draft.files.get(candidate)?.text ?? text) === text)
  if (path === undefined) throw new Error(`two tables have the name of ${source}: rename one of them`)
  if (path !== source) draft.addFile(path, text, mode)
  return path
}

/** The text of aliases(5). Aliases for commands and files, to which deferd does not deliver, become comments. */
function usableAliases(text: string, { draft, files }: TableContext): string {
  const read = (path: string): string => {
    const found = files.read(path)
    if (found === null) throw new Error('it cannot be read')
    return found
  }
  const bad = logicalLines(text).flatMap((line) => {
    const [, name = '', value = ''] = /^("(?:[^"\\]|\\.)*"|[^\s:]+)\s*:?\s*(.*)$/s.exec(line.text) ?? []
    try {
      openAliasTable([{ kind: 'inline', entries: new Map([[name.replaceAll('"', '').toLowerCase(), value]]) }], read, Infinity)
      return []
    } catch (error) {
      draft.note(errorMessage(error).replace(/; [^;]*$/, ': it is left out'))
      return [line.number]
    }
  })
  return bad.length === 0 ? text : commentedOut(text, new Set(bad))
}
