/** Names of the header fields that DKIM signatures cover (dkim_oversign_headers, dkim_sign_headers). */

export interface SignedFields {
  /** Named once more than present, so that none can be added. */
  readonly oversigned: readonly string[]
  /** Named once more than present, when present. */
  readonly oversignedWhenPresent: readonly string[]
  /** Named as often as present. */
  readonly signed: readonly string[]
  /** Beginnings of names, such as `List-`; named as often as present. */
  readonly prefixes: readonly string[]
}

/** A field name (RFC 5322 §3.6.8). */
const NAME = /^[!-9;-~]+$/
/** Fields that relays add or change on the way (RFC 6376 §5.4.1), and the signature itself. */
const UNSIGNABLE = new Set(['received', 'return-path', 'bcc', 'dkim-signature', 'authentication-results'])

interface Lists {
  readonly dkim_oversign_headers: readonly string[]
  readonly dkim_sign_headers: readonly string[]
}

/** Throws an error for the operator when a name cannot be signed, occurs twice, or From is missing (RFC 6376 §5.4). */
export function parseSignedFields(lists: Lists): SignedFields {
  const all = [...lists.dkim_oversign_headers.map((name) => name.replace(/\?$/, '')), ...lists.dkim_sign_headers]
  const seen = new Set<string>()
  for (const name of all) {
    const lower = name.toLowerCase()
    if (!NAME.test(name.replace(/\*$/, '')) || name.includes('?'))
      throw new Error(`${JSON.stringify(name)} is not the name of a header field`)
    if (UNSIGNABLE.has(lower)) throw new Error(`${name} must not be signed, because it changes on the way`)
    if (seen.has(lower)) throw new Error(`${name} is listed twice`)
    seen.add(lower)
  }
  if (!seen.has('from')) throw new Error('From must be signed')
  const [foreign] = lists.dkim_oversign_headers.filter((name) => name.includes('*'))
  if (foreign !== undefined) throw new Error(`${foreign} has a *, which only dkim_sign_headers may have`)
  return {
    oversigned: lists.dkim_oversign_headers.filter((name) => !name.endsWith('?')),
    oversignedWhenPresent: lists.dkim_oversign_headers.flatMap((name) => (name.endsWith('?') ? [name.slice(0, -1)] : [])),
    signed: lists.dkim_sign_headers.filter((name) => !name.endsWith('*')),
    prefixes: lists.dkim_sign_headers.flatMap((name) => (name.endsWith('*') ? [name.slice(0, -1)] : [])),
  }
}
