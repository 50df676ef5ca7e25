/**
 * Patterns of filters, as operators write them: `*` matches any text, every other character itself. Letters of ASCII are the same in
 * upper and lower case, other letters are not (i;ascii-casemap, RFC 4790 §9.2). LIKE of SQLite and ILIKE of PostgreSQL with the
 * collation "C" fold the same letters, so that a filter selects the same mail in every store. Pure.
 */

import { normalizeAddress, unquoteLocalPart, withALabels } from '../mail/address.ts'

/** Form of the pattern of an enhanced status code (RFC 3463): a code, or one with wildcards. */
export const STATUS_PATTERN = /^(?:[245]\.\d{1,3}\.\d{1,3}|[\d.]*\*[\d.*]*)$/

/**
 * Converts a filter pattern to a pattern of LIKE with a backslash as its escape. A failed LIKE is not tried again from an earlier `%`, so
 * that its time is at most the product of both lengths, in SQLite and in PostgreSQL.
 */
export const likePattern = (pattern: string): string => pattern.replaceAll(/[\\%_]/g, '\\$&').replaceAll(/\*+/g, '%')

const inJson = (pattern: string): string => JSON.stringify(pattern).slice(1, -1)

/** Pattern of LIKE for JSON text that has a string which matches a filter pattern. */
export const likeInJson = (pattern: string): string => likePattern(`*"${inJson(pattern)}"*`)

/** Pattern of LIKE for JSON text that has a reply such as `535 5.7.8 denied`, the text after whose code begins with what matches a filter pattern. */
export const likeBehindCode = (pattern: string): string => `%"____${likePattern(`${inJson(pattern)}*`)}`

/** Converts a part of a text, or a pattern of the whole text, to a pattern. */
export const partPattern = (text: string): string => (text.includes('*') ? text : `*${text}*`)

const BEYOND_ASCII = /[\u0080-\uffff]/

const folded = (text: string): string =>
  BEYOND_ASCII.test(text) ? text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase()) : text.toLowerCase()

/**
 * Returns a predicate of the texts that match a filter pattern. Each part between stars is searched once, behind the one before it: the
 * first place where a part occurs leaves the most text for the others. The time is at most the product of both lengths.
 */
export function patternMatcher(pattern: string): (text: string) => boolean {
  const [first = '', ...parts] = folded(pattern).split(/\*+/)
  const last = parts.pop()
  if (last === undefined) return (text) => folded(text) === first
  return (text) => {
    const subject = folded(text)
    if (!subject.startsWith(first) || !subject.endsWith(last)) return false
    let from = first.length
    for (const part of parts) {
      const at = subject.indexOf(part, from)
      if (at < 0) return false
      from = at + part.length
    }
    return from <= subject.length - last.length
  }
}

export const matchesPattern = (pattern: string, text: string): boolean => patternMatcher(pattern)(text)

/** Pattern of an address that an operator names: its normal form, and a pattern with `*` as it is; the domain with A-labels, as in all mail. */
export function addressPattern(text: string): string {
  const pattern = text.includes('*') ? text : normalizeAddress(text)
  const domain = pattern.lastIndexOf('@') + 1
  return domain === 0 ? pattern : pattern.slice(0, domain) + withALabels(pattern.slice(domain))
}

/** The pattern of an address without its quotes: earlier versions stored `a..b@example.com` as it was given. */
export const unquotedPattern = (pattern: string): string => (pattern.includes('*') ? pattern : unquoteLocalPart(pattern))

/**
 * Returns a predicate of the addresses whose text or normal form matches a filter pattern. Mail that an earlier version queued has addresses
 * that are not in their normal form.
 */
export function addressMatcher(pattern: string): (address: string) => boolean {
  const matches = patternMatcher(pattern)
  return (address) => {
    if (matches(address)) return true
    const normal = normalizeAddress(address)
    return normal !== address && matches(normal)
  }
}
