/** Opens the lookup tables of a parameter. Tables are read once; a reload opens them again. */
import { errorMessage } from '../system/caught-error.ts'
import { isPatterns, type CidrSource, type PatternSource, type TableSource } from '../config/values/lookup-tables.ts'
import { CidrTable } from '../patterns/cidr-table.ts'
import { lookUpAtOnce, MatchTooLong } from '../patterns/matching.ts'
import { PatternTable, type ResultRules, type RuleLine } from '../patterns/pattern-table.ts'
import { logicalLines, parseTexthash } from './texthash.ts'

/** The lookup tables of one parameter, searched in their order. */
export interface LookupTable {
  /** Name of the parameter. */
  readonly name: string
  /**
   * Value of a folded key in the first table that has it; undefined when none has. `whole` is the key as it was given, which tables
   * of patterns match; they are not searched without it. Throws LookupFailed.
   */
  readonly find: (key: string, whole?: string) => string | undefined
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

/** Reading of files, and of results of patterns. */
export interface Opening extends ResultRules {
  readonly readFile: (path: string) => string
  /** Throws an Error for a value that cannot be used. One in a text file is a warning, as the value may never be looked up. */
  readonly verify?: ((value: string) => void) | undefined
  /** Effect of such a value in a text file, for the warning. Absent: mail that meets it is refused. */
  readonly effect?: string | undefined
}

/** Opens the tables of a parameter. Throws an Error that names parameter and path when a file cannot be read. */
export function openTable(name: string, sources: readonly TableSource[], opening: Opening): OpenedTable {
  const warnings: string[] = []
  const finds = sources.map((source): LookupTable['find'] => {
    if (isPatterns(source)) return findPattern(name, openPatterns(name, source, opening))
    if (source.kind === 'cidr') {
      const networks = new CidrTable(ruleLines(name, source, opening), (result) => opening.verify?.(result))
      return (_key, whole) => (whole === undefined ? undefined : networks.find(whole))
    }
    if (source.kind !== 'texthash') verifyWritten(name, source.kind === 'static' ? [source.value] : source.entries.values(), opening)
    if (source.kind === 'static') return () => source.value
    const entries = source.kind === 'inline' ? source.entries : fileEntries(name, source.path, { ...opening, warnings })
    return (key) => entries.get(key)
  })
  const [only = () => undefined] = finds
  return { table: { name, find: finds.length < 2 ? only : (key, whole) => firstOf(finds, key, whole) }, warnings }
}

/** Verifies values of the configuration itself. Throws an Error that names the parameter. */
function verifyWritten(name: string, values: Iterable<string>, { verify }: Opening): void {
  for (const value of values) {
    try {
      verify?.(value)
    } catch (cause) {
      throw new Error(`${name}: ${errorMessage(cause)}`, { cause })
    }
  }
}

function firstOf(finds: readonly LookupTable['find'][], key: string, whole: string | undefined): string | undefined {
  for (const find of finds) {
    const value = find(key, whole)
    if (value !== undefined) return value
  }
  return undefined
}

/** Opens a table of patterns. Throws an Error that names parameter, path and line. */
export function openPatterns(name: string, source: PatternSource, opening: Opening): PatternTable {
  return new PatternTable(source.kind, ruleLines(name, source, opening), opening)
}

function ruleLines(name: string, source: PatternSource | CidrSource, { readFile }: Opening): readonly RuleLine[] {
  if ('rules' in source) return source.rules.map((text, i) => ({ where: `${name}: rule ${i + 1}`, text: octetsOf(text) }))
  const content = contentOf(name, source.path, readFile)
  return logicalLines(content).map(({ text, number }) => ({
    where: `${name}: ${source.path}, line ${number}`,
    text: octetsOf(text.trimEnd()),
  }))
}

function findPattern(name: string, table: PatternTable): LookupTable['find'] {
  return (_key, whole) => {
    if (whole === undefined) return undefined
    try {
      const found = lookUpAtOnce(table.lookUp(octetsOf(whole)))
      return found === undefined ? undefined : textOf(found)
    } catch (error) {
      throw error instanceof MatchTooLong ? new LookupFailed(`${name}: ${error.message}`) : error
    }
  }
}

/** The UTF-8 octets of a text, one character each. */
const octetsOf = (text: string): string => Buffer.from(text).toString('latin1')
const textOf = (octets: string): string => Buffer.from(octets, 'latin1').toString()

function contentOf(name: string, path: string, readFile: Opening['readFile']): string {
  try {
    return readFile(path)
  } catch (cause) {
    throw new Error(`${name}: cannot read ${path}: ${errorMessage(cause)}`, { cause })
  }
}

const REFUSED = 'mail that meets the entry is refused with 451'

function fileEntries(
  name: string,
  path: string,
  { readFile, verify, effect = REFUSED, warnings }: Pick<Opening, 'readFile' | 'verify' | 'effect'> & { readonly warnings: string[] },
): ReadonlyMap<string, string> {
  const { entries, ignored } = parseTexthash(contentOf(name, path, readFile))
  warnings.push(...ignored.map((text) => `${name}: ${path}, ${text}`))
  for (const [key, value] of entries) {
    try {
      verify?.(value)
    } catch (error) {
      warnings.push(`${name}: ${path}, ${key}: ${errorMessage(error)}; ${effect}`)
    }
  }
  return entries
}
