/** A compiled pattern of a regexp: or pcre: table. It matches octets, one character each, in time linear to their number (RE2). */
import { RE2JS } from 're2js'
import { errorMessage } from '../system/caught-error.ts'
import { UnsupportedSyntax } from './octet-class.ts'
import { translatePcre } from './pcre-syntax.ts'
import { translatePosix } from './posix-syntax.ts'

/** Type of the table that a pattern is from (regexp_table(5), pcre_table(5)). */
export type PatternType = 'regexp' | 'pcre'

/** Octets of the groups of a match by number; the whole match is 0. A group that matched nothing is empty. */
export type Groups = readonly string[]

/** An expression of RE2, which threads can exchange. */
export interface Expression {
  readonly text: string
  readonly flags: number
}

const { CASE_INSENSITIVE, DOTALL, MULTILINE, LONGEST_MATCH } = RE2JS

/** Flags of a rule that are set, after the defaults of Postfix: i in both types, s in pcre. */
type Flags = ReadonlySet<string>

const KNOWN: Readonly<Record<PatternType, { readonly defaults: string; readonly flags: string }>> = {
  regexp: { defaults: 'i', flags: 'im' },
  pcre: { defaults: 'is', flags: 'imsxAEU' },
}

export class Pattern {
  readonly expression: Expression
  readonly #compiled: RE2JS

  /** Compiles an expression of RE2. Throws UnsupportedSyntax. */
  constructor(expression: Expression) {
    this.expression = expression
    try {
      this.#compiled = RE2JS.compile(expression.text, expression.flags)
    } catch (error) {
      throw new UnsupportedSyntax(`${errorMessage(error)}; correct the pattern`)
    }
  }

  /** Compiles a pattern of a table. `flags` are the letters after it, each of which inverts a default. Throws UnsupportedSyntax. */
  static parse(type: PatternType, source: string, flags: string): Pattern {
    return new Pattern(type === 'regexp' ? posix(source, flagsOf(type, flags)) : pcre(source, flagsOf(type, flags)))
  }

  get groupCount(): number {
    return this.#compiled.groupCount()
  }

  /** Upper bound of the steps of a match: instructions of the expression × octets. */
  stepsFor(octets: string): number {
    return this.#compiled.programSize() * (octets.length + 1)
  }

  /** The groups of the first match; null without a match. Without `withGroups` the list is empty, and the match is faster. */
  match(octets: string, withGroups: boolean): Groups | null {
    if (!this.#compiled.test(octets)) return null
    if (!withGroups) return []
    const matcher = this.#compiled.matcher(octets)
    if (!matcher.find()) return null
    return Array.from({ length: this.groupCount + 1 }, (_, number) => matcher.group(number) ?? '')
  }
}

function flagsOf(type: PatternType, given: string): Flags {
  const { defaults, flags: known } = KNOWN[type]
  const flags = new Set(defaults)
  for (const flag of given) {
    if (flag === 'x' && type === 'regexp') {
      throw new UnsupportedSyntax('the flag x selects basic regular expressions; remove it, and write an extended one')
    }
    if (!known.includes(flag)) throw new UnsupportedSyntax(`the flag ${flag} is not known; known are ${known.split('').join(', ')}`)
    if (!flags.delete(flag)) flags.add(flag)
  }
  return flags
}

const withFlags = (flags: Flags, bits: number): number =>
  bits | (flags.has('i') ? CASE_INSENSITIVE : 0) | (flags.has('m') ? MULTILINE : 0) | (flags.has('s') ? DOTALL : 0)

const posix = (source: string, flags: Flags): Expression => ({
  text: translatePosix(source, flags.has('m')),
  flags: withFlags(flags, LONGEST_MATCH),
})

function pcre(source: string, flags: Flags): Expression {
  const text = translatePcre(source, flags.has('x'))
  const greedy = flags.has('U') ? `(?U)${text}` : text
  return { text: flags.has('A') ? `\\A(?:${greedy})` : greedy, flags: withFlags(flags, 0) }
}
