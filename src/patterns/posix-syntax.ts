/**
 * Translates POSIX extended regular expressions, with the extensions of the GNU C library, to the syntax of RE2 (regex(7), Postfix
 * regexp_table(5)). What RE2 cannot match in linear time is refused. Pure.
 */
import { literal, OctetClass, UnsupportedSyntax } from './octet-class.ts'
import { SourceReader } from './source-reader.ts'

/** Maximum count of an interval in RE2. */
const LARGEST_COUNT = 1000
const CLASSES: ReadonlySet<string> = new Set('alnum alpha blank cntrl digit graph lower print punct space upper xdigit'.split(' '))
/** Escapes of classes. */
const CLASS_ESCAPES: Readonly<Record<string, string>> = {
  w: String.raw`\w`,
  W: String.raw`\W`,
  s: String.raw`[\t-\r ]`,
  S: String.raw`[^\t-\r ]`,
}
/** Escapes of positions, which cannot be repeated. */
const POSITIONS: Readonly<Record<string, string>> = { b: String.raw`\b`, B: String.raw`\B`, '`': String.raw`\A`, "'": String.raw`\z` }

/** The parts of a branch or of the whole expression. An anchor cannot be repeated. */
type Part = { readonly text: string; readonly repeatable: boolean }

/** Translates an expression. `byLine`: REG_NEWLINE. Throws UnsupportedSyntax. */
export function translatePosix(source: string, byLine: boolean): string {
  const reader = new SourceReader(source)
  const open: Part[][] = []
  let parts: Part[] = []
  while (reader.hasMore) {
    if (reader.takes('(')) {
      open.push(parts)
      parts = []
    } else if (reader.next === ')' && open.length > 0) {
      reader.take()
      const group = `(${textOf(parts)})`
      parts = open.pop() ?? []
      parts.push({ text: group, repeatable: true })
    } else if ('*+?{'.includes(reader.next)) repeat(parts, reader)
    else parts.push(partAt(reader, byLine))
  }
  if (open.length > 0) throw new UnsupportedSyntax('a parenthesis is not closed; add )')
  return textOf(parts)
}

const textOf = (parts: readonly Part[]): string => parts.map(({ text }) => text).join('')

/** Repeats the last part. In POSIX, a second operator repeats the repetition; in RE2 it would make it lazy. */
function repeat(parts: Part[], reader: SourceReader): void {
  const quantifier = quantifierAt(reader)
  const last = parts.pop()
  if (last?.repeatable !== true) throw new UnsupportedSyntax('nothing precedes a repetition operator; write \\ before it to match it')
  parts.push({ text: `(?:${last.text})${quantifier}`, repeatable: true })
}

function quantifierAt(reader: SourceReader): string {
  if (reader.next !== '{') return reader.take()
  const [whole, least = '', rest, most = ''] = reader.match(/\{(\d*)(,(\d*))?\}/y) ?? []
  if (whole === undefined || (least === '' && rest === undefined)) throw new UnsupportedSyntax('{ begins no count; write \\{ to match it')
  if (Math.max(Number(least), Number(most)) > LARGEST_COUNT)
    throw new UnsupportedSyntax(`a count exceeds ${LARGEST_COUNT}; write a smaller one`)
  return `{${least === '' ? '0' : least}${rest === undefined ? '' : `,${most}`}}`
}

function partAt(reader: SourceReader, byLine: boolean): Part {
  const character = reader.take()
  switch (character) {
    case '|':
    case '^':
    case '$':
      return { text: character, repeatable: false }
    case '.':
      return { text: byLine ? String.raw`[^\n]` : '(?s:.)', repeatable: true }
    case '[':
      return { text: bracketAt(reader, byLine), repeatable: true }
    case '\\':
      return POSITIONS[reader.next] === undefined
        ? { text: escapeAt(reader), repeatable: true }
        : { text: POSITIONS[reader.take()] ?? '', repeatable: false }
  }
  return { text: literal(character.charCodeAt(0)), repeatable: true }
}

function escapeAt(reader: SourceReader): string {
  const character = reader.take()
  if (character === '') throw new UnsupportedSyntax('a \\ ends the pattern; write \\\\ to match it')
  const known = CLASS_ESCAPES[character]
  if (known !== undefined) return known
  if (/\d/.test(character)) throw new UnsupportedSyntax(`\\${character} refers back to a group, which takes unlimited time; remove it`)
  if ('<>'.includes(character)) throw new UnsupportedSyntax(`\\${character} is not known; write \\b for the edge of a word`)
  if (/[A-Za-z]/.test(character)) {
    throw new UnsupportedSyntax(`\\${character} is the letter ${character} in regexp: tables; write the letter, or use a pcre: table`)
  }
  return literal(character.charCodeAt(0))
}

/** A bracket expression after its `[`. A \ in it is an ordinary character. */
function bracketAt(reader: SourceReader, byLine: boolean): string {
  const negated = reader.takes('^')
  const list = new OctetClass(negated)
  if (negated && byLine) list.add(0x0a)
  for (let first = true; first || reader.next !== ']'; first = false) {
    const named = reader.match(/\[:(\w+):\]/y)
    if (named === null) addRange(list, reader)
    else if (CLASSES.has(named[1] ?? '')) list.addClass(named[0])
    else throw new UnsupportedSyntax(`${named[0]} is no class; known are ${[...CLASSES].join(', ')}`)
  }
  reader.take()
  return list.text
}

function addRange(list: OctetClass, reader: SourceReader): void {
  const from = elementAt(reader)
  // A - before the ] is the character itself.
  list.add(from, reader.match(/-(?!\])/y) === null ? from : elementAt(reader))
}

function elementAt(reader: SourceReader): number {
  const collating = reader.match(/\[([.=])([^])\1\]/y)
  const character = collating?.[2] ?? reader.take()
  if (character === '') throw new UnsupportedSyntax('a [ is not closed; add ], or write \\[ to match it')
  if (character === '[' && collating === null && '.='.includes(reader.next) && reader.next !== '') {
    throw new UnsupportedSyntax('a collating element has more than one character; name the characters')
  }
  return character.charCodeAt(0)
}
