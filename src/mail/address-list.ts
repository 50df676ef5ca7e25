/**
 * Parses address lists of header fields and command lines (RFC 5322 §3.4) as Postfix's sendmail(1) does: names and comments are
 * skipped, missing commas are supplied, and an address needs no domain. Pure.
 */

interface Token {
  /** `word` is an atom, a quoted string or a domain literal; `special` is one special character. */
  readonly kind: 'word' | 'special'
  /** Text without quotes and backslashes. */
  readonly text: string
  /** Offset after the token. */
  readonly end: number
}

/** An address of a list. */
export interface ListedAddress {
  /** The address in SMTP form, without a domain when the list gave none; null when malformed. */
  readonly address: string | null
  readonly text: string
}

/** Specials of RFC 5322 §3.2.3, with the operators that Postfix adds (tok822): `a%b`, `b!a`. */
const SPECIAL = /[|%!()<>@,;:\\".[\]]/
const BLANK = /[ \t\r\n]/
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
  return tokens === null ? [{ address: null, text: list.trim() }] : new Grouping(tokens).groups().map(addressOf)
}

/** An address of a list with its place in the text. */
export interface AddressSpan {
  /** Null when the address has no domain. */
  readonly domain: string | null
  /** Offset after the address. */
  readonly end: number
  /** Offset after the member of the list to which the address belongs. A comma between members belongs to none. */
  readonly memberEnd: number
  /** True when the address names a host by `!` or `%`. */
  readonly isRoute: boolean
}

/** Returns the addresses of a list with their places. Null when a closing character is missing. */
export function addressSpans(list: string): readonly AddressSpan[] | null {
  const tokens = tokenize(list)
  if (tokens === null) return null
  const places = new Map(tokens.map((token, place) => [token, place]))
  const placeOf = (token: Token | undefined): number => (token === undefined ? tokens.length : (places.get(token) ?? tokens.length))
  const groups = new Grouping(tokens).groups()
  return groups.map((group, i) => {
    const at = group.findLastIndex((token) => isSpecial(token, '@'))
    const end = group.at(-1)?.end ?? 0
    const between = tokens.slice(placeOf(group.at(-1)) + 1, placeOf(groups[i + 1]?.[0]))
    return {
      domain: at < 0 ? null : textOf(group.slice(at + 1)),
      end,
      memberEnd: memberEnd(between, { end, limit: i + 1 < groups.length ? end : list.length }),
      isRoute: group.some((token) => isSpecial(token, '!') || isSpecial(token, '%')),
    }
  })
}

/**
 * End of the member whose address ends at `end`: the comma after the address, else `limit` when it is greater (the end of the
 * list, for the last address), else the end of the closing bracket, else `end`.
 */
function memberEnd(between: readonly Token[], { end, limit }: { readonly end: number; readonly limit: number }): number {
  const comma = between.find((token) => isSpecial(token, ','))
  if (comma !== undefined) return comma.end - 1
  if (limit > end) return limit
  return between.find((token) => isSpecial(token, '>'))?.end ?? end
}

const isSpecial = (token: Token | undefined, text: string): boolean => token?.kind === 'special' && token.text === text
const textOf = (tokens: readonly Token[]): string => tokens.map((token) => token.text).join('')

/** Splits a list into tokens. Null when a quoted string, comment or domain literal has no end. */
function tokenize(text: string): readonly Token[] | null {
  const tokens: Token[] = []
  for (let at = 0; at < text.length;) {
    const char = text.charAt(at)
    if (BLANK.test(char)) {
      at++
      continue
    }
    const end = endOfToken(text, at)
    if (end === null) return null
    const body = text.slice(at, end)
    if (char === '"') tokens.push({ kind: 'word', text: unescape(body.slice(1, -1)), end })
    else if (char === '[' || isAtomStart(char)) tokens.push({ kind: 'word', text: unescape(body), end })
    else if (char !== '(') tokens.push({ kind: 'special', text: char, end })
    at = end
  }
  return tokens
}

const isAtomStart = (char: string): boolean => char === '\\' || !SPECIAL.test(char)

/** Removes the backslashes of quoted pairs. Folding white space becomes a space. */
const unescape = (text: string): string => text.replaceAll(/\\([^]|$)/g, '$1').replaceAll(/[\t\r\n]/g, ' ')

/** End of the token that begins at `start`; null when its closing character is missing. */
function endOfToken(text: string, start: number): number | null {
  const char = text.charAt(start)
  if (char === '(') return endOfComment(text, start)
  const closing = char === '"' ? '"' : char === '[' ? ']' : null
  if (closing === null && !isAtomStart(char)) return start + 1
  let at = closing === null ? start : start + 1
  for (; at < text.length; at++) {
    const next = text.charAt(at)
    if (next === '\\') at++
    else if (closing === null ? BLANK.test(next) || SPECIAL.test(next) : next === closing) break
  }
  if (closing !== null) return at < text.length ? at + 1 : null
  return Math.min(at, text.length)
}

/** End of a comment. Comments may be nested. */
function endOfComment(text: string, start: number): number | null {
  let depth = 0
  for (let at = start; at < text.length; at++) {
    const char = text.charAt(at)
    if (char === '\\') at++
    else if (char === '(') depth++
    else if (char === ')' && --depth === 0) return at + 1
  }
  return null
}

/**
 * Groups the tokens of a list into addresses, from right to left as Postfix does:
 * - an address in angle brackets turns the words before it into a name;
 * - in a group (`name: a@x, b@y;`) the words before the colon are its name, not an address;
 * - two words in succession are two addresses.
 */
class Grouping {
  readonly #tokens: readonly Token[]
  readonly #groups: (readonly Token[])[] = []
  /** End of the address that is being collected, exclusive. */
  #end: number

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
    this.#end = tokens.length
  }

  groups(): readonly (readonly Token[])[] {
    let inGroup = false
    for (let at = this.#tokens.length - 1; at >= 0;) {
      inGroup ||= this.#is(at, ';')
      if (this.#is(at, '>')) {
        this.#close(at + 1, at)
        at = this.#bracketed(at)
      } else if (inGroup && this.#is(at, ':')) {
        this.#close(at + 1, this.#lastBefore(at, ','))
        at = this.#end
      } else {
        if (this.#is(at, ';,')) this.#close(at + 1, at)
        else if (this.#isWord(at) && this.#isWord(at + 1)) this.#close(at + 1, at + 1)
        at--
      }
    }
    this.#close(0, 0)
    return this.#groups.toReversed()
  }

  /** Adds the address whose `>` is at `close` and skips the name before it. Returns the next position. */
  #bracketed(close: number): number {
    const open = this.#lastBefore(close, '<')
    this.#close(open + 1, this.#lastBefore(open - 1, '>;,:'))
    return this.#end
  }

  /** Adds the address from `start` to `#end`, unless it is empty. The next address, to the left, ends before `end`. */
  #close(start: number, end: number): void {
    if (start < this.#end) this.#groups.push(this.#tokens.slice(start, this.#end))
    this.#end = end
  }

  #lastBefore(from: number, characters: string): number {
    let at = from
    while (at >= 0 && !this.#is(at, characters)) at--
    return at
  }

  #is(at: number, characters: string): boolean {
    const token = this.#tokens[at]
    return token?.kind === 'special' && characters.includes(token.text)
  }

  /** True when the token at `at` is a word that is not grouped yet. */
  #isWord(at: number): boolean {
    return at < this.#end && this.#tokens[at]?.kind === 'word'
  }
}

function addressOf(tokens: readonly Token[]): ListedAddress {
  // A source route is ignored (RFC 5322 §4.4).
  const route = isSpecial(tokens[0], '@') ? tokens.findIndex((token) => isSpecial(token, ':')) : -1
  const rest = tokens.slice(route + 1)
  const text = textOf(rest)
  const at = text.lastIndexOf('@')
  const local = at < 0 ? text : text.slice(0, at)
  const isMalformed = rest.some((token, i) => (token.kind === 'word' ? rest[i - 1]?.kind === 'word' : !JOINING.includes(token.text)))
  if (isMalformed || local === '') return { address: null, text }
  return { address: (DOT_STRING.test(local) ? local : quoted(local)) + text.slice(local.length), text }
}

const quoted = (local: string): string => `"${local.replaceAll(/["\\]/g, String.raw`\$&`)}"`
