/**
 * Translates Perl-compatible regular expressions to the syntax of RE2 (pcrepattern(3), Postfix pcre_table(5)). What RE2 cannot
 * match in linear time is refused. Pure.
 */
import { literal, OctetClass, UnsupportedSyntax } from './octet-class.ts'
import { SourceReader } from './source-reader.ts'

/** Escapes of classes: the same inside and outside of a bracket expression, without the brackets. */
const CLASS_ESCAPES: Readonly<Record<string, string>> = {
  d: String.raw`\d`,
  w: String.raw`\w`,
  s: String.raw`\t-\r `,
  h: String.raw`\t \x{a0}`,
  v: String.raw`\n-\r\x{85}`,
}
/** Escapes of single characters. */
const CHARACTERS: Readonly<Record<string, number>> = { a: 7, e: 0x1b, f: 0x0c, n: 0x0a, r: 0x0d, t: 9 }
/** Escapes of positions and sequences, outside of bracket expressions. */
const POSITIONS: Readonly<Record<string, string>> = {
  A: String.raw`\A`,
  b: String.raw`\b`,
  B: String.raw`\B`,
  z: String.raw`\z`,
  Z: String.raw`\n?\z`,
  R: String.raw`(?:\r\n|[\n-\r\x{85}])`,
  N: String.raw`[^\n]`,
  E: '',
}

const LOOKAROUND = 'looks ahead or behind, which deferd does not match; put the rule between "if /PATTERN/" or "if !/PATTERN/" and "endif"'
/** Constructs after `(?` that are refused, in the order of the search. */
const REFUSED: readonly (readonly [start: RegExp, problem: string])[] = [
  [/^(?:=|!|<=|<!)/, LOOKAROUND],
  [/^>/, 'is an atomic group, which deferd does not match; write (?: and )'],
  [/^\|/, 'resets the numbers of groups; number them one by one'],
  [/^\(/, 'is a condition, which deferd does not match; use "if" and "endif"'],
  [/^(?:[R&0-9+]|-\d|P[>=])/, 'calls or repeats another group; write out the group'],
]

/** Translates an expression. `extended`: blanks and # comments are ignored (PCRE_EXTENDED). Throws UnsupportedSyntax. */
export function translatePcre(source: string, extended: boolean): string {
  const reader = new SourceReader(source)
  let text = ''
  while (reader.hasMore) {
    if (extended && reader.match(/\s+|#[^\n]*/y) !== null) continue
    text += partAt(reader)
  }
  return text
}

function partAt(reader: SourceReader): string {
  const repetition = reader.match(/(?:[*+?]|\{\d+(?:,\d*)?\})([+?]?)/y)
  if (repetition !== null) return repetitionOf(repetition)
  const character = reader.take()
  switch (character) {
    case '(':
      return groupAt(reader)
    case '[':
      return bracketAt(reader)
    case '\\':
      return escapeAt(reader)
    case ')':
    case '|':
    case '^':
    case '$':
    case '.':
      return character
  }
  return literal(character.charCodeAt(0))
}

function repetitionOf([whole, mode]: RegExpExecArray): string {
  if (mode !== '+') return whole
  throw new UnsupportedSyntax(`${whole} is possessive, which deferd does not match; remove the last +`)
}

function groupAt(reader: SourceReader): string {
  if (reader.next === '*') throw new UnsupportedSyntax('(* begins a verb, which deferd does not know; remove it')
  if (!reader.takes('?')) return '('
  if (reader.match(/#[^)]*\)/y) !== null) return ''
  if (reader.match(/P?<[A-Za-z_]\w*>|'[A-Za-z_]\w*'/y) !== null) return '('
  const plain = reader.match(/[imsU]*(?:-[imsU]+)?[:)]/y)
  if (plain !== null) return plain[0] === ')' ? '' : `(?${plain[0]}`
  const rest = reader.match(/[^)]*/y)?.[0] ?? ''
  const problem = REFUSED.find(([start]) => start.test(rest))?.[1] ?? 'is not known; remove it'
  throw new UnsupportedSyntax(`(?${rest.slice(0, 20)} ${problem}`)
}

function escapeAt(reader: SourceReader): string {
  if (reader.takes('Q')) return quotedAt(reader)
  const group = classAt(reader)
  if (group !== null) return group.isComplement ? `[^${group.text}]` : `[${group.text}]`
  const position = POSITIONS[reader.next]
  if (position !== undefined) return (reader.take(), position)
  return literal(characterAt(reader))
}

/** The text between \Q and \E. */
function quotedAt(reader: SourceReader): string {
  let text = ''
  while (reader.hasMore && !reader.takes(String.raw`\E`)) text += literal(reader.take().charCodeAt(0))
  return text
}

/** The class of an escape, or the class whose complement it is; null for other escapes. */
function classAt(reader: SourceReader): { readonly text: string; readonly isComplement: boolean } | null {
  const text = CLASS_ESCAPES[reader.next.toLowerCase()]
  return text === undefined ? null : { text, isComplement: /[A-Z]/.test(reader.take()) }
}

/** The character that an escape stands for. */
function characterAt(reader: SourceReader): number {
  const octal = reader.match(/0([0-7]{0,2})|o\{([0-7]+)\}/y)
  if (octal !== null) return Number.parseInt(octal[1] ?? octal[2] ?? '', 8) || 0
  const hexadecimal = reader.match(/x(?:\{([\da-f]+)\}|([\da-f]{0,2}))/iy)
  if (hexadecimal !== null) return Number.parseInt(hexadecimal[1] ?? hexadecimal[2] ?? '', 16) || 0
  const control = reader.match(/c([ -~])/y)?.[1]
  if (control !== undefined) return control.toUpperCase().charCodeAt(0) ^ 0x40
  const character = reader.take()
  if (character === '') throw new UnsupportedSyntax('a \\ ends the pattern; write \\\\ to match it')
  if (/[1-9gk]/.test(character)) throw new UnsupportedSyntax(`\\${character} refers back to a group, which takes unlimited time; remove it`)
  if (/[pPX]/.test(character))
    throw new UnsupportedSyntax(`\\${character} is for Unicode, and mail is matched by octets; write [[:alpha:]] or a list`)
  const code = CHARACTERS[character]
  if (code === undefined && /[A-Za-z]/.test(character)) throw new UnsupportedSyntax(`\\${character} is not known; write another expression`)
  return code ?? character.charCodeAt(0)
}

/** A bracket expression after its `[`. */
function bracketAt(reader: SourceReader): string {
  const list = new OctetClass(reader.takes('^'))
  for (let first = true; first || reader.next !== ']'; first = false) addMember(list, reader)
  reader.take()
  return list.text
}

function addMember(list: OctetClass, reader: SourceReader): void {
  const named = reader.match(/\[:(\^?)(\w+):\]/y)
  if (named !== null) return list.addClass(named[0], named[1] === '^')
  const from = memberAt(list, reader)
  if (from === null) return
  if (reader.match(/-(?!\])/y) === null) return list.add(from)
  const to = memberAt(list, reader)
  if (to !== null) return list.add(from, to)
  list.add(from)
  list.add(0x2d)
}

/** The next character of a bracket expression; null for a class, which is added to `list`. */
function memberAt(list: OctetClass, reader: SourceReader): number | null {
  const character = reader.take()
  if (character === '') throw new UnsupportedSyntax('a [ is not closed; add ], or write \\[ to match it')
  if (character !== '\\') return character.charCodeAt(0)
  if (reader.takes('b')) return 8
  const found = classAt(reader)
  if (found === null) return characterAt(reader)
  if (!found.isComplement) addClass(list, found.text)
  else if (/^\\[dw]$/.test(found.text)) list.addClass(found.text.toUpperCase(), true)
  else throw new UnsupportedSyntax('a list has the complement of blanks; write two rules')
  return null
}

/** Adds the class of an escape, whose members above U+007F are named one by one. */
function addClass(list: OctetClass, text: string): void {
  const high = /\\x\{(\w+)\}$/.exec(text)
  list.addClass(high === null ? text : text.slice(0, high.index))
  if (high !== null) list.add(Number.parseInt(high[1] ?? '', 16))
}
