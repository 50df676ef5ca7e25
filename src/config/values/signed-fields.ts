/** Names of the header fields that DKIM signatures cover (dkim_oversign_headers, dkim_sign_headers). */

export interface SignedFields {
  /** Signed once more often than present, so that none can be added. */
  readonly oversigned: readonly string[]
  /** As `oversigned`, when the message has the field. */
  readonly oversignedWhenPresent: readonly string[]
  /** Signed as often as present. */
  readonly signed: readonly string[]
  /** Beginnings of names, such as `List-`; signed as often as present. */
  readonly prefixes: readonly string[]
}

/** Name of a header field (RFC 5322 §3.6.8). */
const NAME = /^[!-9;-~]+$/
/** Fields that relays add or change on the way (RFC 6376 §5.4.1), and the signature itself. */
const UNSIGNABLE = ['received', 'return-path', 'bcc', 'dkim-signature', 'authentication-results']

export interface SignedLists {
  readonly dkim_oversign_headers: readonly string[]
  readonly dkim_sign_headers: readonly string[]
}

interface Mistake {
  readonly parameter: keyof SignedLists
  readonly text: string
}

/** The first name that cannot be signed or occurs twice, or the missing From (RFC 6376 §5.4); null without a mistake. */
export function signedFieldsMistake(lists: SignedLists): Mistake | null {
  const seen = new Set<string>()
  for (const parameter of ['dkim_oversign_headers', 'dkim_sign_headers'] as const) {
    for (const name of lists[parameter]) {
      const text = problemOf(name, parameter) ?? (seen.has(plain(name)) ? `${name.replace(/\?$/, '')} is listed twice` : null)
      if (text !== null) return { parameter, text }
      seen.add(plain(name))
    }
  }
  return seen.has('from') ? null : { parameter: 'dkim_oversign_headers', text: 'From must be signed' }
}

/** The name in lower case, without the mark `?` for a field that is signed when present. */
const plain = (name: string): string => name.replace(/\?$/, '').toLowerCase()

function problemOf(name: string, parameter: keyof SignedLists): string | null {
  const bare = name.replace(parameter === 'dkim_oversign_headers' ? /[?*]$/ : /\*$/, '')
  if (!NAME.test(bare) || /[?*]/.test(bare)) return `${JSON.stringify(name)} is not the name of a header field`
  const lower = bare.toLowerCase()
  const isPrefix = name.endsWith('*')
  if (isPrefix && parameter === 'dkim_oversign_headers') return `${name} has a *, which only dkim_sign_headers may have`
  const changing = UNSIGNABLE.find((one) => (isPrefix ? one.length > lower.length && one.startsWith(lower) : one === lower))
  if (changing === undefined) return null
  return isPrefix
    ? `${name} stands for ${changing} too, which changes on the way`
    : `${bare} must not be signed, because it changes on the way`
}

/** Throws an Error for the first mistake. */
export function parseSignedFields(lists: SignedLists): SignedFields {
  const mistake = signedFieldsMistake(lists)
  if (mistake !== null) throw new Error(mistake.text)
  return {
    oversigned: lists.dkim_oversign_headers.filter((name) => !name.endsWith('?')),
    oversignedWhenPresent: lists.dkim_oversign_headers.flatMap((name) => (name.endsWith('?') ? [name.slice(0, -1)] : [])),
    signed: lists.dkim_sign_headers.filter((name) => !name.endsWith('*')),
    prefixes: lists.dkim_sign_headers.flatMap((name) => (name.endsWith('*') ? [name.slice(0, -1)] : [])),
  }
}
