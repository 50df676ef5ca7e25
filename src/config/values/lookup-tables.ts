/**
 * Parses the values of parameters that name lookup tables (Postfix DATABASE_README): a TOML table, `inline:{key=value, …}`,
 * `texthash:/path`, `static:value`, `regexp:/path`, `pcre:/path`, or a list of them. Pure: no file is read.
 */
import { errorMessage } from '../../system/caught-error.ts'
import { foreignTable, foreignTableType } from './postfix-parameters.ts'
import type { Kind } from './values.ts'

/** One lookup table. */
export type TableSource =
  | { readonly kind: 'inline'; readonly entries: ReadonlyMap<string, string> }
  | { readonly kind: 'texthash'; readonly path: string }
  | { readonly kind: 'static'; readonly value: string }
  | PatternSource
  | CidrSource

/** A table of networks: a file, or rules. */
export type CidrSource = RulesIn<'cidr'>

/** A table of patterns: a file, or rules. */
export type PatternSource = RulesIn<'regexp' | 'pcre'>

type RulesIn<Type> = { readonly kind: Type; readonly path: string } | { readonly kind: Type; readonly rules: readonly string[] }

export const isPatterns = (source: TableSource): source is PatternSource => source.kind === 'regexp' || source.kind === 'pcre'

/** The values that the configuration itself contains. Values in files are parsed at their look-up. */
export function valuesOf(sources: readonly TableSource[]): readonly string[] {
  return sources.flatMap((source) => {
    if (source.kind === 'static') return [source.value]
    return source.kind === 'inline' ? [...source.entries.values()] : []
  })
}

const FORMS = 'write a TOML table, inline:{key=value}, texthash:/PATH, cidr:/PATH, regexp:/PATH, pcre:/PATH or static:value'

/** The tables are searched in order. */
export const tables: Kind<readonly TableSource[]> = (given) => {
  try {
    return { value: parseTables(given) }
  } catch (error) {
    return { wrong: errorMessage(error) }
  }
}

/** Parses the value of a parameter. Throws an Error that quotes a malformed table. */
export function parseTables(given: unknown): readonly TableSource[] {
  if (typeof given === 'string') return splitOutsideBraces(given).map(parseTable)
  if (Array.isArray(given)) return given.flatMap((one: unknown) => parseTables(one))
  if (typeof given === 'object' && given !== null) return [{ kind: 'inline', entries: tomlEntries(given) }]
  throw new Error(`expected lookup tables, got ${JSON.stringify(given)}; ${FORMS}`)
}

function tomlEntries(table: object): ReadonlyMap<string, string> {
  const entries = new Map<string, string>()
  for (const [key, value] of Object.entries(table)) {
    if (typeof value !== 'string') throw new Error(`expected a text for "${key}", got ${JSON.stringify(value)}`)
    addEntry(entries, key, value)
  }
  return entries
}

/** Adds an entry under its folded key. The first entry of a key counts, as in Postfix. */
function addEntry(entries: Map<string, string>, key: string, value: string): void {
  const folded = key.toLowerCase()
  if (!entries.has(folded)) entries.set(folded, value)
}

function parseTable(text: string): TableSource {
  const [, type = '', rest = ''] = /^(\w+):(.*)$/s.exec(text) ?? []
  switch (type) {
    case 'inline':
      return { kind: 'inline', entries: inlineEntries(text, rest) }
    case 'texthash':
      if (rest === '') throw new Error(`${JSON.stringify(text)} has no path; write texthash:/PATH`)
      return { kind: 'texthash', path: rest }
    case 'static': {
      const value = stripped(rest)
      if (value === '') throw new Error(`${JSON.stringify(text)} has no value; write static:VALUE`)
      return { kind: 'static', value }
    }
    case 'regexp':
    case 'pcre':
      return { kind: type, ...rulesIn(type, text, rest) }
    case 'cidr':
      return { kind: type, ...rulesIn(type, text, rest) }
  }
  const foreign = foreignTableType(text)
  if (foreign === undefined) throw new Error(`${JSON.stringify(text)} is not a lookup table; ${FORMS}`)
  throw new Error(foreignTable(foreign))
}

function rulesIn(kind: string, whole: string, rest: string): { readonly path: string } | { readonly rules: readonly string[] } {
  if (rest.startsWith('{') && rest.endsWith('}')) return { rules: splitOutsideBraces(rest.slice(1, -1)).map(stripped) }
  if (rest === '') throw new Error(`${JSON.stringify(whole)} has no path; write ${kind}:/PATH`)
  return { path: rest }
}

function inlineEntries(whole: string, text: string): ReadonlyMap<string, string> {
  const entries = new Map<string, string>()
  const wrong = `${JSON.stringify(whole)} is malformed; write inline:{key=value, {key = value with blanks}}`
  if (!text.startsWith('{') || !text.endsWith('}')) throw new Error(wrong)
  for (const member of splitOutsideBraces(text.slice(1, -1))) {
    const pair = stripped(member)
    const equals = pair.indexOf('=')
    const key = pair.slice(0, Math.max(0, equals)).trim()
    if (key === '') throw new Error(wrong)
    addEntry(entries, key, pair.slice(equals + 1).trim())
  }
  if (entries.size === 0) throw new Error(wrong)
  return entries
}

/** The text without braces around it. Throws an Error when other text follows its closing brace, as Postfix does (extpar). */
function stripped(text: string): string {
  if (!text.startsWith('{')) return text
  let depth = 0
  const end = Array.from(text).findIndex((letter) => (depth += letter === '{' ? 1 : letter === '}' ? -1 : 0) === 0)
  if (end === Array.from(text).length - 1) return text.slice(1, -1).trim()
  throw new Error(`${JSON.stringify(text)} has text after its closing brace; separate members by commas or blanks`)
}

/** The parts of a text between commas and blanks outside braces. Throws an Error when a brace has no counterpart. */
export function splitOutsideBraces(text: string): readonly string[] {
  const found: string[] = []
  let member = ''
  let depth = 0
  for (const letter of text) {
    if (letter === '{') depth++
    if (letter === '}') depth--
    if (depth < 0) break
    if (depth > 0 || !/[\s,]/.test(letter)) member += letter
    else if (member !== '') member = (found.push(member), '')
  }
  if (depth !== 0) throw new Error(`${JSON.stringify(text)} has a brace without its counterpart`)
  return member === '' ? found : [...found, member]
}
