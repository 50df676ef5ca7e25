/** Finds addresses in texts for people: replies, dialogues, log lines, commands. Takes time in proportion to the text. Pure. */

/** Octets of the longest local part that is looked for: RFC 5321 §4.5.3.1.1 allows 64, VERP makes longer ones. */
const LONGEST_LOCAL = 320

const ENDS_LOCAL = /[\s<>()[\]\\,;:"@\p{Cc}]/u
const DOMAIN = /\[[^\]\s]{1,255}\]|[\p{L}\p{N}](?:[\p{L}\p{N}.-]{0,253}[\p{L}\p{N}])?/uy
const MARK = /["@]/g
const QUOTED = /"(?:[^"\\\n]|\\.){1,320}"(?=@)/uy

/** The begin of the local part that ends before `at`. */
function beginOfLocal(text: string, at: number, earliest: number): number {
  let from = at
  while (from > earliest && at - from < LONGEST_LOCAL && !ENDS_LOCAL.test(text.charAt(from - 1))) from--
  return from
}

function matchAt(pattern: RegExp, text: string, index: number): string {
  pattern.lastIndex = index
  return pattern.exec(text)?.[0] ?? ''
}

/** The next place of `"` or `@`; -1 for none. */
function nextMark(text: string, from: number): number {
  MARK.lastIndex = from
  return MARK.exec(text)?.index ?? -1
}

/**
 * The text with each address changed. An address is given as it stands there, perhaps with what precedes it without a delimiter, such as
 * `user=anna@example.com`.
 */
export function mapAddresses(text: string, change: (address: string) => string): string {
  if (!text.includes('@')) return text
  let mapped = ''
  let done = 0
  for (let mark = nextMark(text, 0); mark >= 0;) {
    const quoted = text[mark] === '"' ? matchAt(QUOTED, text, mark) : ''
    const at = mark + quoted.length
    const from = quoted === '' ? beginOfLocal(text, at, done) : mark
    const domain = text[at] === '@' ? matchAt(DOMAIN, text, at + 1) : ''
    if (from === at || domain === '') {
      mark = nextMark(text, mark + 1)
      continue
    }
    let end = at + 1 + domain.length
    // Not an address, but nothing that has one is left over.
    for (let more = domain; text[end] === '@' && more !== '';) {
      more = matchAt(DOMAIN, text, end + 1)
      if (more !== '') end += 1 + more.length
    }
    mapped += text.slice(done, from) + change(text.slice(from, end))
    done = end
    mark = nextMark(text, end)
  }
  return mapped + text.slice(done)
}
