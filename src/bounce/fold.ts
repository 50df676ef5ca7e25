/**
 * Text from anywhere, made fit for the lines of a notice: no controls, no runs of blanks, no line longer than SMTP
 * carries (RFC 5321 §4.5.3.1.6).
 */
import { harmless } from '../mail/reply.ts'

/** Columns of a line, and what continues it (Postfix notices). */
const WIDTH = 79
const INDENT = '    '
/** Where even a word without blanks is broken: far below 998 octets in any script. */
const LONGEST_WORD = 240

/** One line: controls masked, blanks single, broken characters replaced, not longer than `limit`. */
export function oneLine(text: string, limit = 2_048): string {
  const line = harmless(text).toWellFormed().replace(/ +/g, ' ').trim()
  return line.length <= limit ? line : `${line.slice(0, limit - 3).toWellFormed()}...`
}

/** The same in ASCII, for fields that carry nothing else (RFC 3464 §2.1). */
export const ascii = (line: string): string => line.replace(/\P{ASCII}/gu, '?')

function* words(line: string): Generator<string> {
  for (const word of line.split(' ')) {
    let rest = word
    while (rest.length > LONGEST_WORD) {
      // A pair of surrogates is one character.
      const cut = /[\ud800-\udbff]/.test(rest.charAt(LONGEST_WORD - 1)) ? LONGEST_WORD - 1 : LONGEST_WORD
      yield rest.slice(0, cut)
      rest = rest.slice(cut)
    }
    yield rest
  }
}

/** A line broken at blanks into lines of 79 columns, continued by four blanks. */
export function fold(line: string): string[] {
  const lines: string[] = []
  let current: string | undefined
  for (const word of words(line)) {
    if (current === undefined) current = word
    else if (current.length + 1 + word.length <= WIDTH) current += ` ${word}`
    else {
      lines.push(current)
      current = INDENT + word
    }
  }
  return [...lines, current ?? '']
}
