/** Results of rules: text with `$1`, `${1}` or `$(1)` for groups of the match, and `$$` for a dollar sign (Postfix mac_parse). Pure. */
import { UnsupportedSyntax } from './octet-class.ts'
import type { Groups } from './pattern.ts'

export interface ResultText {
  /** Texts and numbers of groups. */
  readonly parts: readonly (string | number)[]
  /** The highest number of a group; 0 for none. */
  readonly highest: number
}

const REFERENCE = /\$(?:\$|(\w+)|\{([^}]*)\}|\(([^)]*)\)|)/g

/** Parses a result. Throws UnsupportedSyntax when a `$` names no group. */
export function parseResult(text: string): ResultText {
  const parts: (string | number)[] = []
  let from = 0
  for (const { 0: whole, 1: plain, 2: braced, 3: bracketed, index } of text.matchAll(REFERENCE)) {
    parts.push(text.slice(from, index), whole === '$$' ? '$' : groupNumber(whole, plain ?? braced ?? bracketed ?? ''))
    from = index + whole.length
  }
  parts.push(text.slice(from))
  return { parts, highest: Math.max(0, ...parts.filter((part) => typeof part === 'number')) }
}

function groupNumber(whole: string, name: string): number {
  const number = Number(name)
  if (/^\d+$/.test(name) && number > 0) return number
  throw new UnsupportedSyntax(`${JSON.stringify(whole)} names no group; write \${1}, or $$ for a dollar sign`)
}

export const resultOf = ({ parts }: ResultText, groups: Groups): string =>
  parts.map((part) => (typeof part === 'string' ? part : (groups[part] ?? ''))).join('')

/** A result that is the same for each match; undefined when it has groups. */
export const constantOf = (result: ResultText): string | undefined => (result.highest === 0 ? resultOf(result, []) : undefined)
