/** Opens the tables of header_checks, body_checks and their variants, and looks up actions in them. */
import { isDeepStrictEqual } from 'node:util'
import type { TableSource } from '../config/values/lookup-tables.ts'
import type { Config } from '../config/options.ts'
import { isPatterns } from '../config/values/lookup-tables.ts'
import type { Lookup, PatternTable } from '../patterns/pattern-table.ts'
import { parseResult, type ResultText } from '../patterns/result-text.ts'
import { openPatterns, openTable, type OpenedTable } from '../rewriting/lookup-table.ts'
import { readText } from '../rewriting/tables.ts'
import { ARRIVAL_VERBS, DELIVERY_VERBS, requireAction, type Part, type ActionName } from './action.ts'

/** Parameters that name tables of actions. */
export const CHECK_NAMES = ['header_checks', 'mime_header_checks', 'nested_header_checks', 'body_checks', 'smtp_header_checks'] as const
export type CheckName = (typeof CHECK_NAMES)[number]

/** The tables by parameter. A parameter without tables is missing. */
export type CheckTables = ReadonlyMap<CheckName, CheckTable>

interface OpenedChecks {
  readonly checks: CheckTables
  /** A sentence for each line of a file that is ignored. */
  readonly warnings: readonly string[]
}

const RULES: Readonly<Record<CheckName, { readonly part: Part; readonly verbs: ReadonlySet<ActionName> }>> = {
  header_checks: { part: 'header', verbs: ARRIVAL_VERBS },
  mime_header_checks: { part: 'header', verbs: ARRIVAL_VERBS },
  nested_header_checks: { part: 'header', verbs: ARRIVAL_VERBS },
  body_checks: { part: 'body', verbs: ARRIVAL_VERBS },
  smtp_header_checks: { part: 'header', verbs: DELIVERY_VERBS },
}

const OF_HEADERS: readonly CheckName[] = ['mime_header_checks', 'nested_header_checks']

/** Opens the tables. Throws an Error that names parameter, path and line of the first mistake. */
export function openChecks(config: Pick<Config, CheckName>): OpenedChecks {
  const warnings: string[] = []
  const used = CHECK_NAMES.filter((name) => config[name].length > 0)
  const checks = new Map<CheckName, CheckTable>()
  for (const name of used) {
    // mime_header_checks and nested_header_checks are mostly header_checks.
    const isSame = OF_HEADERS.includes(name) && isDeepStrictEqual(config[name], config.header_checks)
    const known = isSame ? checks.get('header_checks') : undefined
    checks.set(name, known ?? openCheckTable(name, config[name], readText, warnings))
  }
  return { checks, warnings }
}

/** Opens the tables of one parameter. Throws an Error as `openChecks` does. */
export function openCheckTable(
  name: CheckName,
  sources: readonly TableSource[],
  readFile: (path: string) => string,
  warnings: string[] = [],
): CheckTable {
  const { part, verbs } = RULES[name]
  const opening = { readFile, substitutes: true, accept: (result: ResultText) => requireAction(result, verbs, part) }
  const members = sources.map((source) => {
    if (isPatterns(source)) return openPatterns(name, source, opening)
    const opened = openTable(name, [source], opening)
    warnings.push(...opened.warnings)
    requireActions(name, source, opening.accept)
    return opened
  })
  return new CheckTable(name, part, members)
}

/** Verifies the values that the configuration contains itself. Those of text files are verified when they are used. */
function requireActions(name: CheckName, source: TableSource, accept: (result: ResultText) => ResultText): void {
  const values = source.kind === 'static' ? [source.value] : source.kind === 'inline' ? [...source.entries.values()] : []
  for (const value of values) {
    try {
      accept(parseResult(value.replaceAll('$', '$$$$')))
    } catch (error) {
      throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
    }
  }
}

/** The tables of one parameter, searched in their order. */
export class CheckTable {
  readonly name: CheckName
  readonly part: Part
  readonly #members: readonly (PatternTable | OpenedTable)[]

  constructor(name: CheckName, part: Part, members: readonly (PatternTable | OpenedTable)[]) {
    this.name = name
    this.part = part
    this.#members = members
  }

  /** Looks up a header field or a line, one character per octet, without its line end. An empty line has no action (Postfix maps_find). */
  *lookUp(octets: string): Lookup {
    if (octets === '') return undefined
    for (const member of this.#members) {
      const found = 'lookUp' in member ? yield* member.lookUp(octets) : member.table.find(octets.toLowerCase())
      if (found !== undefined) return found
    }
    return undefined
  }
}
