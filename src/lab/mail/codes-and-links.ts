/** Confirmation codes and links in mail, as tests of sign-ups need them. Pure. */

export interface Link {
  readonly url: string
  /** Text of the link in HTML; the URL in plain text. */
  readonly text: string
}

/** Number of characters that are read. */
const MOST_TEXT = 1_000_000

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }

/** Decodes numeric entities, and the named ones of ENTITIES. */
const withoutEntities = (text: string): string =>
  text.replaceAll(
    /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z]{2,6}));/gi,
    (whole, hex: string | undefined, digits: string | undefined, name: string | undefined) => {
      if (name !== undefined) return ENTITIES[name.toLowerCase()] ?? whole
      const point = hex === undefined ? Number(digits) : Number.parseInt(hex, 16)
      return point <= 0x10_ffff ? String.fromCodePoint(point) : whole
    },
  )

/** Removes the elements with this name and their content. Text after one that is not closed is kept. */
function withoutElement(html: string, [name, open]: readonly [string, RegExp]): string {
  const close = `</${name}`
  const lower = html.toLowerCase()
  let result = ''
  let from = 0
  for (const { index } of html.matchAll(open)) {
    if (index < from) continue
    const end = lower.indexOf(close, index)
    if (end < 0) break
    result += `${html.slice(from, index)} `
    from = html.indexOf('>', end) + 1 || html.length
  }
  return result + html.slice(from)
}

const UNSHOWN = [
  ['script', /<script\b/gi],
  ['style', /<style\b/gi],
  ['head', /<head\b/gi],
] as const

const stripped = (html: string): string => UNSHOWN.reduce(withoutElement, html).replaceAll(/<[^>]{0,10000}>/g, ' ')

/** Text of HTML, without its markup. */
export const textOfHtml = (html: string): string => withoutEntities(stripped(html.slice(0, MOST_TEXT)))

const URL_IN_TEXT = /\bhttps?:\/\/[^\s<>"]{1,2000}/gi

/**
 * Texts that look like codes and are none: URLs, dates, times, prices, and numbers with signs as telephones have. Every
 * quantifier is bounded, so that the time is linear in the length of the mail.
 */
const NO_CODES = [
  URL_IN_TEXT,
  /\b\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\b/g,
  /\b\d{1,2}\.? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?,? \d{4}\b/gi,
  /\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.? (?:\d{1,2},? )?\d{4}\b/gi,
  /(?:©|\(c\)|copyright) ?\d{4}(?: ?[-–] ?\d{4})?/gi,
  /\b\d{1,2}:\d{2}(?::\d{2})?\b/g,
  /(?:[$€£¥]|\b(?:USD|EUR|GBP|CHF|JPY)) ?\d[\d.,]{0,20}/g,
  /\b\d[\d.,]{0,20} ?(?:[$€£¥%]|(?:USD|EUR|GBP|CHF|JPY)\b)/g,
  /\b\d{1,20}[.,]\d{1,20}\b/g,
  /\+\d[\d ()/.-]{5,20}\d/g,
  /\(\d{2,5}\)[\d /.-]{4,20}\d/g,
  /\b\d{2,5}[ /-]\d{3,8}(?:[ /-]\d{1,8}){0,5}\b/g,
]

const DIGITS = /^\d{4,8}$/
const MIXED = /^(?=.*\d)(?=.*[A-Za-z])[A-Za-z\d]{6,10}$/

/** Words of 4 to 8 digits, or of 6 to 10 letters and digits with both; each once, in the order of appearance. */
export function codesIn(text: string): readonly string[] {
  const withoutAddresses = text
    .slice(0, MOST_TEXT)
    .split(/\s+/)
    .filter((word) => !word.includes('@'))
  const rest = NO_CODES.reduce((left, pattern) => left.replaceAll(pattern, ' '), withoutAddresses.join(' '))
  const words = rest.split(/[^\p{L}\p{N}_-]+/u).filter((word) => DIGITS.test(word) || MIXED.test(word))
  return [...new Set(words)]
}

const LONGEST_LINK_TEXT = 1_000
const ANCHOR = /<a\b[^>]{0,10000}>/gi
const TARGET = /\bhref\s{0,9}=\s{0,9}(?:"([^"]*)"|'([^']*)'|([^\s>"']+))/i

function anchorsOf(html: string): readonly Link[] {
  const lower = html.toLowerCase()
  // Without a closing tag behind one anchor there is none behind the later ones.
  let end = 0
  return [...html.matchAll(ANCHOR)].flatMap((match) => {
    const [, quoted, single, bare] = TARGET.exec(match[0]) ?? []
    const url = quoted ?? single ?? bare
    if (url === undefined) return []
    const begin = match.index + match[0].length
    if (end >= 0) end = lower.indexOf('</a', begin)
    const text = end < 0 ? '' : textOfHtml(html.slice(begin, Math.min(end, begin + LONGEST_LINK_TEXT)))
    return [{ url: withoutEntities(url).trim(), text: text.replaceAll(/\s+/g, ' ').trim() }]
  })
}

/** Links of the HTML, then those of the text that the HTML does not have; in the order of appearance. */
export function linksIn({ html, text }: { readonly html: string | null; readonly text: string | null }): readonly Link[] {
  const anchors = anchorsOf((html ?? '').slice(0, MOST_TEXT))
  const written = [...(text ?? '').slice(0, MOST_TEXT).matchAll(URL_IN_TEXT)].map(([url]) => url.replace(/[.,;:!?)\]}>'"]+$/, ''))
  const known = new Set(anchors.map(({ url }) => url))
  return [...anchors, ...[...new Set(written)].filter((url) => !known.has(url)).map((url) => ({ url, text: url }))]
}
