/** Converts regexp:, pcre: and cidr: tables. Rules that deferd refuses become comments. */
import { CHECK_NAMES, openCheckTable } from '../../checks/check-tables.ts'
import type { CidrSource, PatternSource } from '../../config/values/lookup-tables.ts'
import { SENDER_TABLE_NAMES } from '../../delivery/routing/routing-tables.ts'
import { openAliasTable } from '../../rewriting/alias-table.ts'
import { openTable } from '../../rewriting/lookup-table.ts'
import { constantOf, type ResultText } from '../../patterns/result-text.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { logicalLines } from './main-cf.ts'

interface PatternFile {
  readonly name: string
  readonly kind: PatternSource['kind'] | CidrSource['kind']
  readonly path: string
  readonly text: string
  /** Throws an Error for a result that cannot be used. */
  readonly verify?: ((result: string) => void) | undefined
}

/** The type and the path of a table of patterns or networks; null for other tables. */
export function patternPath(table: string): Pick<PatternFile, 'kind' | 'path'> | null {
  const [, kind, path = ''] = /^(?:proxy:)?(regexp|pcre|cidr):(\/.*)$/s.exec(table) ?? []
  return kind === 'regexp' || kind === 'pcre' || kind === 'cidr' ? { kind, path } : null
}

/** The text with refused rules as comments, and the reasons. */
export function usableRules(file: PatternFile): { readonly text: string; readonly reasons: readonly string[] } {
  const reasons: string[] = []
  let { text } = file
  for (;;) {
    const problem = problemIn({ ...file, text })
    if (problem === null) return { text, reasons }
    const line = Number(/, line (\d+): /.exec(problem)?.[1] ?? 0)
    reasons.push(problem)
    text = line === 0 ? '' : withoutRule(text, line)
  }
}

function problemIn({ name, kind, path, text, verify }: PatternFile): string | null {
  const sources = [{ kind, path } as PatternSource | CidrSource]
  const readFile = (): string => text
  const check = CHECK_NAMES.find((one) => one === name)
  try {
    if (check !== undefined) openCheckTable(check, sources, readFile)
    else if (name === 'alias_maps') openAliasTable(sources, readFile, Infinity)
    else {
      const accept = (result: ResultText): ResultText => (result.highest === 0 ? (verify?.(constantOf(result) ?? ''), result) : result)
      openTable(name, sources, { readFile, substitutes: !SENDER_TABLE_NAMES.some((one) => one === name), accept, verify })
    }
    return null
  } catch (error) {
    return errorMessage(error)
  }
}

/** The text without the rule that begins at a line. For a condition, all rules up to its end are removed. */
function withoutRule(text: string, line: number): string {
  const rules = logicalLines(text)
  const first = rules.findIndex(({ number }) => number === line)
  const left = new Set<number>()
  let depth = 0
  for (const rule of rules.slice(first)) {
    left.add(rule.number)
    if (/^if(?![a-z0-9])/i.test(rule.text)) depth++
    else if (/^endif(?![a-z0-9])/i.test(rule.text)) depth--
    if (depth <= 0) break
  }
  return commentedOut(text, left)
}

/** The text with the logical lines of these numbers turned into comments. */
export function commentedOut(text: string, numbers: ReadonlySet<number>): string {
  let isLeftOut = false
  const lines = text.split('\n').map((line, i) => {
    if (!/^\s*(?:#|$)/.test(line) && !/^\s/.test(line)) isLeftOut = numbers.has(i + 1)
    return isLeftOut && !/^\s*(?:#|$)/.test(line) ? `# ${line}` : line
  })
  return lines.join('\n')
}
