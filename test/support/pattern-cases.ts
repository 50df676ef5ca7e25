/** Filter patterns for tests: the definition of a match, random cases, and patterns that a matcher with backtracking never finishes. */
import fc from 'fast-check'

export interface PatternCase {
  readonly pattern: string
  readonly text: string
}

const lower = (character: string): string => (/[A-Z]/.test(character) ? character.toLowerCase() : character)

/** The definition of a match, without regard to time: `*` takes no character, or one and then the rest. Folds letters of ASCII. */
export function isMatch({ pattern, text }: PatternCase): boolean {
  if (pattern === '') return text === ''
  const [head, tail] = [pattern.charAt(0), pattern.slice(1)]
  if (head === '*') return isMatch({ pattern: tail, text }) || (text !== '' && isMatch({ pattern, text: text.slice(1) }))
  return text !== '' && lower(head) === lower(text.charAt(0)) && isMatch({ pattern: tail, text: text.slice(1) })
}

/** Characters that have a meaning in regular expressions, in LIKE or in the folding of case. */
const character = fc.constantFrom('a', 'A', 'b', 'i', 'I', '.', '\\', '%', '_', '[', '\n', 'ä', 'Ä', 'İ', 'ı', 'K', 'ſ', '😀')
const short = fc.string({ unit: character, maxLength: 3 })
const pieces = fc.array(fc.record({ text: short, inPattern: fc.oneof(short, fc.constant('*'), fc.constant(null)) }), { maxLength: 6 })

/** A text of pieces, and a pattern that has the same pieces, others, or stars in place of them. */
export const patternCase: fc.Arbitrary<PatternCase> = pieces.map((all) => ({
  pattern: all.map(({ text, inPattern }) => inPattern ?? text).join(''),
  text: all.map(({ text }) => text).join(''),
}))

/** A pattern for requests, with more ways to match than any time allows to try. */
export const MANY_STARS = `${'*'.repeat(60)}~`

/** Patterns of this kind with long texts that they do not match. Each pattern with `*` behind it matches its text with `ab~` behind it. */
export const HOSTILE_CASES: readonly PatternCase[] = [
  { pattern: MANY_STARS, text: 'a'.repeat(50_000) },
  { pattern: `${'*a'.repeat(60)}*~`, text: 'a'.repeat(50_000) },
  { pattern: `${'*a*b'.repeat(500)}~`, text: 'ab'.repeat(25_000) },
  { pattern: `${'*'.repeat(100_000)}~`, text: 'a'.repeat(50_000) },
  { pattern: '*a'.repeat(500), text: `${'a'.repeat(499)}${'b'.repeat(50_000)}` },
]
