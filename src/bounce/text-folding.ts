/**
 * Prepares text from any source for the lines of a notice: masks control characters, collapses blanks, and limits the line length
 * to that of RFC 5321 §4.5.3.1.6.
 */
import { maskControls } from '../mail/smtp-reply.ts'

/** Maximum columns of a line (as in Postfix notices). */
const WIDTH = 79
/** Start of a continuation line (as in Postfix notices). */
const INDENT = '    '
/** Number of characters after which text without blanks is broken. The result has fewer than 998 octets in any script. */
const LONGEST_WORD = 240

/**
 * Converts text to one line of at most `limit` characters: masks control characters, collapses blanks, replaces invalid
 * characters.
 */
export function oneLine(text: string, limit = 2_048): string {
  const line = maskControls(text).toWellFormed().replace(/ +/g, ' ').trim()
  return line.length <= limit ? line : `${line.slice(0, limit - 3).toWellFormed()}...`
}

/** Replaces characters outside ASCII, for fields that allow ASCII only (RFC 3464 §2.1). */
export const ascii = (line: string): string => line.replace(/\P{ASCII}/gu, '?')

function* words(line: string): Generator<string> {
  for (const word of line.split(' ')) {
    let rest = word
    while (rest.length > LONGEST_WORD) {
      // Keeps surrogate pairs together.
      const cut = /[\ud800-\udbff]/.test(rest.charAt(LONGEST_WORD - 1)) ? LONGEST_WORD - 1 : LONGEST_WORD
      yield rest.slice(0, cut)
      rest = rest.slice(cut)
    }
    yield rest
  }
}

/**
 * Breaks a line at blanks into lines of at most 79 columns; a longer word has a line of its own. Continuation lines begin with four
 * spaces.
 */
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
