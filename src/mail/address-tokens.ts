/**
 * Tokens of address lists (RFC 5322 §3.2), and their grouping into addresses as Postfix does it (tok822): from right to left, with
 * missing commas supplied. Pure.
 */

export interface Token {
  /** `special` is one special character; `atom`, `quoted` and `literal` are words. */
  readonly kind: 'atom' | 'quoted' | 'literal' | 'comment' | 'special'
  /** Text without quotes and backslashes; of a literal with its brackets, of a comment as written. */
  readonly text: string
}

export type ListNode =
  | { readonly kind: 'address'; readonly tokens: readonly Token[] }
  /** The colon after the name of a group. */
  | { readonly kind: 'group' }
  | Token

/** Specials of RFC 5322 §3.2.3, with the operators that Postfix adds: `a%b`, `b!a`. */
const SPECIAL = /[|%!()<>@,;:\\".[\]]/
const BLANK = /[ \t\r\n]/
/** Characters of an atom that must be quoted: blanks, controls and specials, after a backslash. */
// oxlint-disable-next-line no-control-regex -- control characters need quotes
const NEEDS_QUOTES = /[\u0000-\u0020\u007f|%!()<>@,;:\\".[\]]/

export const isSpecial = (node: Token | ListNode | undefined, characters: string): boolean =>
  node?.kind === 'special' && characters.includes(node.text)

export const isWord = (node: Token | ListNode | undefined): boolean =>
  node?.kind === 'atom' || node?.kind === 'quoted' || node?.kind === 'literal'

/** Splits a list into tokens. Null when a quoted string, comment or domain literal has no end. */
export function tokenize(text: string): readonly Token[] | null {
  const tokens: Token[] = []
  for (let at = 0; at < text.length;) {
    if (BLANK.test(text.charAt(at))) {
      at++
      continue
    }
    const end = endOfToken(text, at)
    if (end === null) return null
    tokens.push(tokenOf(text.slice(at, end)))
    at = end
  }
  return tokens
}

function tokenOf(body: string): Token {
  const char = body.charAt(0)
  if (char === '"') return { kind: 'quoted', text: unescape(body.slice(1, -1)) }
  if (char === '[') return { kind: 'literal', text: unescape(body) }
  if (char === '(') return { kind: 'comment', text: body.replaceAll(/[\t-\r ]+/g, ' ') }
  if (!isAtomStart(char)) return { kind: 'special', text: char }
  const text = unescape(body)
  return { kind: NEEDS_QUOTES.test(text) ? 'quoted' : 'atom', text }
}

const isAtomStart = (char: string): boolean => char === '\\' || !SPECIAL.test(char)

/** Removes the backslashes of quoted pairs. Folding white space becomes a space. */
const unescape = (text: string): string => text.replaceAll(/\\([^]|$)/g, '$1').replaceAll(/[\t\r\n]/g, ' ')

/** End of the token that begins at `start`; null when its closing character is missing. */
export function endOfToken(text: string, start: number): number | null {
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
 * Groups the tokens of a list into addresses:
 * - an address in angle brackets turns the words before it into a name;
 * - in a group (`name: a@x, b@y;`) the words before the colon are its name, not an address;
 * - two words in succession are two addresses;
 * - a comment inside an address follows it.
 */
export const parseList = (tokens: readonly Token[]): readonly ListNode[] => new Grouping(tokens).nodes()

const COMMA: Token = { kind: 'special', text: ',' }

class Grouping {
  readonly #tokens: readonly Token[]
  /** Nodes from right to left. */
  readonly #nodes: ListNode[] = []
  /** Tokens of the address that is being collected, from right to left. */
  #pending: Token[] = []
  #at: number

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
    this.#at = tokens.length - 1
  }

  nodes(): readonly ListNode[] {
    let inGroup = false
    let wordMayFollow = true
    for (let token = this.#token; token !== undefined; token = this.#token) {
      inGroup ||= isSpecial(token, ';')
      if (isSpecial(token, '>')) this.#bracketed(token)
      else if (inGroup && isSpecial(token, ':')) this.#groupName()
      else {
        const separate = !wordMayFollow && isWord(token)
        if (separate || isSpecial(token, ';')) this.#close(true)
        this.#take(token)
      }
      if (token.kind !== 'comment') wordMayFollow = !isWord(token)
    }
    this.#close(false)
    return this.#nodes.toReversed()
  }

  get #token(): Token | undefined {
    return this.#tokens[this.#at]
  }

  #take(token: Token): void {
    this.#at--
    if (isSpecial(token, ',')) this.#close(false)
    if (token.kind === 'comment' || isSpecial(token, ',;')) this.#nodes.push(token)
    else this.#pending.push(token)
  }

  /** Completes the pending address (tokens are read from right to left), and adds a comma to its left if `comma` is true. */
  #close(comma: boolean): void {
    if (this.#pending.length === 0) return
    this.#nodes.push({ kind: 'address', tokens: this.#pending.toReversed() })
    if (comma) this.#nodes.push(COMMA)
    this.#pending = []
  }

  /** Takes the address before a `>`, its `<`, and the name before it. */
  #bracketed(bracket: Token): void {
    this.#close(true)
    this.#nodes.push(bracket)
    this.#at--
    for (let token = this.#token; token !== undefined && !isSpecial(token, '<'); token = this.#token) {
      this.#at--
      if (token.kind === 'comment') this.#nodes.push(token)
      else this.#pending.push(token)
    }
    this.#close(false)
    this.#keepUntil('>;,:')
  }

  #groupName(): void {
    this.#close(false)
    this.#nodes.push({ kind: 'group' })
    this.#at--
    this.#keepUntil(',')
  }

  /** Keeps tokens as they are, up to one of the specials. */
  #keepUntil(specials: string): void {
    for (let token = this.#token; token !== undefined && !isSpecial(token, specials); token = this.#token) {
      this.#nodes.push(token)
      this.#at--
    }
  }
}
