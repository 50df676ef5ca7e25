/**
 * Parses address lists of header fields and command lines (RFC 5322 §3.4) as Postfix's sendmail(1) does: names and comments are
 * skipped, missing commas are supplied, and an address needs no domain. Pure.
 */
import { isSpecial, isWord, parseList, tokenize, type Token } from './address-tokens.ts'

export interface ListedAddress {
  /** The address in SMTP form, without a domain when the list gave none; null when malformed. */
  readonly address: string | null
  readonly text: string
}

/** Special characters that join words to an address. Any other special character makes an address malformed. */
const JOINING = '@.%!|'
/** Local parts that need no quotes in SMTP. Dots may be anywhere, because some providers assign such addresses. */
// oxlint-disable-next-line no-control-regex -- control characters need quotes
const DOT_STRING = /^[^\s\u0000-\u001f\u007f"(),:;<>[\\\]]+$/u

/**
 * Returns the addresses in order, including repeated ones. When a quoted string, comment or domain literal is not closed, returns
 * the whole text as one malformed address.
 */
export function addressesIn(list: string): readonly ListedAddress[] {
  const tokens = tokenize(list)
  if (tokens === null) return [{ address: null, text: list.trim() }]
  return parseList(tokens).flatMap((node) => (node.kind === 'address' ? [addressOf(node.tokens)] : []))
}

/** Text of an address: its tokens without blanks between them. */
export const textOf = (tokens: readonly Token[]): string => tokens.map((token) => token.text).join('')

/** The tokens without a source route, which is ignored (RFC 5322 §4.4). */
export function withoutRoute(tokens: readonly Token[]): readonly Token[] {
  const colon = isSpecial(tokens[0], '@') ? tokens.findIndex((token) => isSpecial(token, ':')) : -1
  return tokens.slice(colon + 1)
}

function addressOf(tokens: readonly Token[]): ListedAddress {
  const rest = withoutRoute(tokens)
  const text = textOf(rest)
  const at = text.lastIndexOf('@')
  const local = at < 0 ? text : text.slice(0, at)
  const isMalformed = rest.some((token, i) => (isWord(token) ? isWord(rest[i - 1]) : !JOINING.includes(token.text)))
  if (isMalformed || local === '') return { address: null, text }
  return { address: (DOT_STRING.test(local) ? local : quoted(local)) + text.slice(local.length), text }
}

const quoted = (local: string): string => `"${local.replaceAll(/["\\]/g, String.raw`\$&`)}"`
