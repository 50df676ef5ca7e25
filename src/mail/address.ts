/**
 * Mailboxes and domains as the queue compares them: local parts as they are, domains in lower case (RFC 5321 §2.4).
 */

/** The domain of an address, in lower case; the empty string when there is none. The last `@` counts. */
export function domainOf(address: string): string {
  const at = address.lastIndexOf('@')
  return at < 0 ? '' : address.slice(at + 1).toLowerCase()
}

/** The address with its domain in lower case. */
export function normalizeAddress(address: string): string {
  const at = address.lastIndexOf('@')
  return at < 0 ? address : address.slice(0, at + 1) + address.slice(at + 1).toLowerCase()
}

/** A host name or address literal without brackets, as dialled: `[127.0.0.1]` → `127.0.0.1`, `[IPv6:::1]` → `::1`. */
export function unbracket(host: string): string {
  if (!host.startsWith('[') || !host.endsWith(']')) return host
  return host.slice(1, -1).replace(/^ipv6:/i, '')
}

/** Does the domain equal the pattern, or lie below it when the pattern begins with a dot? */
export const domainMatches = (domain: string, pattern: string): boolean =>
  pattern.startsWith('.') ? domain.endsWith(pattern) : domain === pattern

/** The patterns under which a domain is looked up, most telling first: itself, `.parent` domains longest first, `*`. */
export function* lookupKeys(domain: string): Generator<string> {
  yield domain
  for (let dot = domain.indexOf('.'); dot >= 0; dot = domain.indexOf('.', dot + 1)) yield domain.slice(dot)
  yield '*'
}

/** Does the address need SMTPUTF8 (RFC 6531)? */
// oxlint-disable-next-line no-control-regex -- ASCII is exactly this range
export const isInternational = (address: string): boolean => !/^[\u0000-\u007f]*$/.test(address)
