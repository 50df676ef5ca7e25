/**
 * Normal form of mailboxes: the local part with quotes where they are needed only (RFC 5321 §4.1.2), in the case in which it was given, and the
 * domain in lower case (§2.4). `"bob"@far.example` and `"b\ob"@far.example` are bob@far.example.
 */

import { domainToASCII } from 'node:url'

/** The domain of an address in lower case: the text after the last `@`; empty without an `@`. */
export function domainOf(address: string): string {
  const at = address.lastIndexOf('@')
  return at < 0 ? '' : address.slice(at + 1).toLowerCase()
}

export function withLowerDomain(address: string): string {
  const at = address.lastIndexOf('@')
  return at < 0 ? address : address.slice(0, at + 1) + address.slice(at + 1).toLowerCase()
}

/** An address with a domain, whose local part has quotes where they are needed only. Other text, and a local part with unfinished quotes, is unchanged. */
export const withNeededQuotes = (address: string): string =>
  PLAIN.test(address) || !QUOTABLE.test(address) ? address : quoteLocalPart(unquoteLocalPart(address))

/** The normal form of an address with a domain. Other text is unchanged but for the domain. */
export const normalizeAddress = (address: string): string => withLowerDomain(withNeededQuotes(address))

/** An address whose local part is one quoted string, or has no quotes. */
const QUOTABLE = /^(?:"(?:[^"\\]|\\.)*"|[^"\\]+)@[^"@]*$/su

/** Removes the brackets of an address literal: `[127.0.0.1]` → `127.0.0.1`, `[IPv6:::1]` → `::1`. A host name is returned unchanged. */
export function unbracket(host: string): string {
  if (!host.startsWith('[') || !host.endsWith(']')) return host
  return host.slice(1, -1).replace(/^ipv6:/i, '')
}

/** True when a domain equals the pattern, or is a subdomain of a pattern with a leading dot. */
export const domainMatches = (domain: string, pattern: string): boolean =>
  pattern.startsWith('.') ? domain.endsWith(pattern) : domain === pattern

/** Lookup keys of a domain, most specific first: the domain, its `.parent` domains from longest to shortest, and `*`. */
export function* lookupKeys(domain: string): Generator<string> {
  yield domain
  for (let dot = domain.indexOf('.'); dot >= 0; dot = domain.indexOf('.', dot + 1)) yield domain.slice(dot)
  yield '*'
}

/** Local parts that need no quotes in a header field: atoms with single dots between them (RFC 5322 §3.2.3). 8-bit text is kept. */
// oxlint-disable-next-line no-control-regex -- control characters need quotes
const DOT_ATOM = /^[^\u0000- \u007f"(),.:;<>@[\\\]]+(?:\.[^\u0000- \u007f"(),.:;<>@[\\\]]+)*$/u

/** Addresses without quotes, as almost all are. */
const PLAIN = /^[\w+=-]+(?:\.[\w+=-]+)*@[^"@]*$/

/** The address whose local part is given without quotes and backslashes, with quotes where they are needed. */
export function quoteLocalPart(address: string): string {
  const at = address.lastIndexOf('@')
  const local = at < 0 ? address : address.slice(0, at)
  return DOT_ATOM.test(local) ? address : `"${local.replaceAll(/["\\\r]/g, String.raw`\$&`)}"${address.slice(local.length)}`
}

/** The address with its local part without quotes and backslashes. */
export function unquoteLocalPart(address: string): string {
  if (!address.startsWith('"')) return address
  const at = address.lastIndexOf('@')
  const end = at < 0 || at < address.lastIndexOf('"') ? address.length : at
  return address.slice(1, end - 1).replaceAll(/\\([^])/g, '$1') + address.slice(end)
}

/** A domain, or a pattern of one, with A-labels (RFC 5890) in place of labels beyond ASCII. A label with `*` in it is unchanged. */
export const withALabels = (domain: string): string =>
  isInternational(domain)
    ? domain
        .split('.')
        .map((label) => (label.includes('*') ? label : domainToASCII(label) || label))
        .join('.')
    : domain

/** Whether an address needs SMTPUTF8 (RFC 6531). */
// oxlint-disable-next-line no-control-regex -- ASCII is exactly this range
export const isInternational = (address: string): boolean => !/^[\u0000-\u007f]*$/.test(address)
