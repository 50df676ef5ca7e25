/**
 * Tables of patterns (Postfix regexp_table(5), pcre_table(5)): parsed into rules, which a lookup tries in order. A lookup is a
 * generator that asks for each match, so that its caller decides where the match runs. Pure.
 */
import { errorMessage } from '../system/caught-error.ts'
import { UnsupportedSyntax } from './octet-class.ts'
import { Pattern, type Groups, type PatternType } from './pattern.ts'
import { parseResult, resultOf, type ResultText } from './result-text.ts'

export interface MatchRequest {
  readonly pattern: Pattern
  readonly octets: string
  readonly withGroups: boolean
}

/** A lookup that asks for matches and returns the result of the first rule that matches; undefined without one. */
export type Lookup = Generator<MatchRequest, string | undefined, Groups | null>

interface Condition {
  readonly pattern: Pattern
  readonly negated: boolean
}

type Rule =
  | { readonly kind: 'match'; readonly first: Condition; readonly second: Condition | null; readonly result: ResultText }
  /** `end` is the index of the rule after `endif`. */
  | { readonly kind: 'if'; readonly condition: Condition; end: number }

export interface RuleLine {
  /** File and line, as the beginning of a message. */
  readonly where: string
  readonly text: string
}

/** Reading of the results of a table. */
export interface ResultRules {
  /** False when results may not contain text of the key, for fear of its author. */
  readonly substitutes: boolean
  /** Returns the form in which a result is kept. Throws an Error when it cannot be used. `literal` is the text before `$`. */
  readonly accept?: ((result: ResultText) => ResultText) | undefined
}

export class PatternTable {
  readonly #rules: readonly Rule[]

  /** Throws an Error that begins with the place of the rule. */
  constructor(type: PatternType, lines: readonly RuleLine[], results: ResultRules) {
    this.#rules = parseRules(type, lines, results)
  }

  /** Looks up a key, one character per octet. */
  *lookUp(octets: string): Lookup {
    for (let at = 0; at < this.#rules.length;) {
      const rule = this.#rules[at]!
      at++
      if (rule.kind === 'if') {
        if (!(yield* holds(rule.condition, octets))) at = rule.end
        continue
      }
      const { first, second, result } = rule
      const groups: Groups | null = yield { pattern: first.pattern, octets, withGroups: result.highest > 0 }
      if ((groups !== null) === first.negated) continue
      if (second !== null && !(yield* holds(second, octets))) continue
      return resultOf(result, groups ?? [])
    }
    return undefined
  }
}

function* holds({ pattern, negated }: Condition, octets: string): Generator<MatchRequest, boolean, Groups | null> {
  const groups: Groups | null = yield { pattern, octets, withGroups: false }
  return (groups === null) === negated
}

function parseRules(type: PatternType, lines: readonly RuleLine[], results: ResultRules): readonly Rule[] {
  const rules: Rule[] = []
  const open: { readonly rule: Extract<Rule, { kind: 'if' }>; readonly where: string }[] = []
  for (const { where, text } of lines) {
    try {
      if (/^endif(?![a-z0-9])/i.test(text)) {
        const last = open.pop()
        if (last === undefined) throw new UnsupportedSyntax('endif has no if; remove it')
        last.rule.end = rules.length
        continue
      }
      const rule = parseRule(type, text, results)
      rules.push(rule)
      if (rule.kind === 'if') open.push({ rule, where })
    } catch (error) {
      throw new Error(`${where}: ${errorMessage(error)}`, { cause: error })
    }
  }
  const unclosed = open.at(-1)
  if (unclosed !== undefined) throw new Error(`${unclosed.where}: if has no endif; add a line endif`)
  return rules
}

function parseRule(type: PatternType, text: string, results: ResultRules): Rule {
  const condition = /^if(?![a-z0-9])\s*(.*)$/is.exec(text)?.[1]
  if (condition !== undefined) {
    const { condition: parsed, rest } = conditionAt(type, condition)
    if (rest.trim() !== '') throw new UnsupportedSyntax(`if is followed by ${JSON.stringify(rest.trim())}; remove it`)
    return { kind: 'if', condition: parsed, end: 0 }
  }
  if (/^[a-z0-9]/i.test(text)) throw new UnsupportedSyntax(`${JSON.stringify(text.slice(0, 40))} is no rule; write /PATTERN/ RESULT`)
  const first = conditionAt(type, text)
  const hasSecond = type === 'regexp' && first.rest.startsWith('!')
  const second = hasSecond ? conditionAt(type, first.rest) : null
  const written = (second ?? first).rest.trim()
  const result = results.accept === undefined ? parseResult(written) : results.accept(parseResult(written))
  requireGroups(result, first.condition, results)
  return { kind: 'match', first: first.condition, second: second?.condition ?? null, result }
}

function requireGroups({ highest }: ResultText, { pattern, negated }: Condition, { substitutes }: ResultRules): void {
  if (highest === 0) return
  if (!substitutes) throw new UnsupportedSyntax(`$${highest} would let a stranger choose the result; write it out`)
  if (negated) throw new UnsupportedSyntax(`$${highest} has no group after !; remove it`)
  if (highest > pattern.groupCount) throw new UnsupportedSyntax(`$${highest} has no group in the pattern; add ( and ), or remove it`)
}

/** A pattern between delimiters with its flags and negations, and the text after it. */
function conditionAt(type: PatternType, text: string): { readonly condition: Condition; readonly rest: string } {
  const start = /^[!\s]*/.exec(text)?.[0] ?? ''
  const delimiter = text.charAt(start.length)
  if (delimiter === '') throw new UnsupportedSyntax('the rule has no pattern; write /PATTERN/ RESULT')
  const end = closingAt(text, start.length + 1, delimiter)
  const source = text.slice(start.length + 1, end)
  const flags = (type === 'regexp' ? /^[^\s!]*/ : /^\S*/).exec(text.slice(end + 1))?.[0] ?? ''
  const negated = start.replaceAll(/\s/g, '').length % 2 === 1
  return { condition: { pattern: Pattern.parse(type, source, flags), negated }, rest: text.slice(end + 1 + flags.length) }
}

function closingAt(text: string, from: number, delimiter: string): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at++
    else if (text[at] === delimiter) return at
  }
  throw new UnsupportedSyntax(`the pattern has no closing ${delimiter}; add it`)
}
