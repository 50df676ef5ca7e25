/** The target of a request (RFC 9112 §3.2). */

export interface RequestTarget {
  readonly path: string
  readonly query: URLSearchParams
  /** Host and port of an absolute target, which replaces the field Host; null for a path. */
  readonly authority: string | null
}

/** Parses a target. Undefined for one that is neither a path nor an absolute URL of http or https. Dots in a path have no meaning. */
export function requestTarget(text: string): RequestTarget | undefined {
  const [, authority, rest] = /^https?:\/\/([^/?]*)(.*)$/is.exec(text) ?? [null, null, text]
  const [, path = '', query] = /^([^?]*)(?:\?(.*))?$/s.exec(rest ?? '') ?? []
  if (text.includes('#') || !(path.startsWith('/') || (authority !== null && path === ''))) return undefined
  return { path: path === '' ? '/' : path, query: new URLSearchParams(query), authority: authority ?? null }
}
