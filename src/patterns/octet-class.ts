/**
 * Text of RE2 for octets, which are characters up to U+00FF. RE2 folds the case of letters above U+007F, as Latin-1 has them;
 * POSIX and PCRE tables of Postfix fold ASCII letters only.
 */

/** Syntax of a pattern that deferd does not match. The message states what it is, and what to write instead. */
export class UnsupportedSyntax extends Error {
  override readonly name = 'UnsupportedSyntax'
}

const LAST_ASCII = 0x7f
const LAST_OCTET = 0xff

const hex = (code: number): string => `\\x{${code.toString(16)}}`

/** An octet in or outside of a bracket expression. */
const octet = (code: number): string => (/\w/.test(String.fromCharCode(code)) && code <= LAST_ASCII ? String.fromCharCode(code) : hex(code))

export function literal(code: number): string {
  if (code > LAST_OCTET) throw new UnsupportedSyntax('a character above U+00FF cannot be in octets; remove it')
  return code > LAST_ASCII ? `(?-i:${hex(code)})` : octet(code)
}

/** A bracket expression that is being read. */
export class OctetClass {
  readonly #negated: boolean
  #ascii = ''
  /** Ranges above U+007F. */
  readonly #high: (readonly [from: number, to: number])[] = []
  /** True when a member is the complement of another class. */
  #hasComplement = false

  constructor(negated: boolean) {
    this.#negated = negated
  }

  /** Adds the octets from `from` to `to`, both included. */
  add(from: number, to = from): void {
    if (from > to) throw new UnsupportedSyntax('a range of characters ends before it begins; exchange its ends')
    if (to > LAST_OCTET) throw new UnsupportedSyntax('a character above U+00FF cannot be in octets; remove it')
    if (from <= LAST_ASCII) this.#ascii += from === to ? octet(from) : `${octet(from)}-${octet(Math.min(to, LAST_ASCII))}`
    if (to > LAST_ASCII) this.#high.push([Math.max(from, LAST_ASCII + 1), to])
  }

  /** Adds a class in the syntax of RE2, such as `[:alpha:]` or `\d`, of ASCII characters. */
  addClass(text: string, isComplement = false): void {
    this.#ascii += text
    this.#hasComplement ||= isComplement
  }

  /** The expression in the syntax of RE2. */
  get text(): string {
    if (this.#high.length === 0) return `[${this.#negated ? '^' : ''}${this.#ascii}]`
    if (this.#negated && this.#hasComplement) {
      throw new UnsupportedSyntax('a negated list has both a complement and octets above 127; write two rules')
    }
    const high = this.#negated ? complementOf(this.#high) : this.#high
    const ranges = high.map(([from, to]) => `${hex(from)}-${hex(to)}`).join('')
    const others = ranges === '' ? [] : [`(?-i:[${ranges}])`]
    if (this.#negated) return `(?:${[`[^${this.#ascii}${hex(LAST_ASCII + 1)}-\\x{10ffff}]`, ...others].join('|')})`
    return `(?:${[...(this.#ascii === '' ? [] : [`[${this.#ascii}]`]), ...others].join('|')})`
  }
}

/** Ranges above U+007F that are not among `ranges`. */
function complementOf(ranges: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  const free: [number, number][] = []
  let next = LAST_ASCII + 1
  for (const [from, to] of ranges.toSorted(([a], [b]) => a - b)) {
    if (from > next) free.push([next, from - 1])
    next = Math.max(next, to + 1)
  }
  return next > LAST_OCTET ? free : [...free, [next, LAST_OCTET]]
}
