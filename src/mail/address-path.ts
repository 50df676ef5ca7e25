/**
 * Parses the reverse-path of MAIL and the forward-path of RCPT (RFC 5321 §4.1.2). Every accepted address is safe in SMTP
 * commands, headers and log lines. Forms outside the RFC are accepted where providers have assigned such addresses.
 */
import { isIPv6, isIPv4 } from 'node:net'
import { domainToASCII } from 'node:url'
import { isInternational, normalizeAddress } from './address.ts'

/**
 * Maximum octets of an address. RFC 5321 §4.5.3.1 states limits that a receiver must accept at least. deferd, like Postfix,
 * accepts the longer local parts of reply addresses and SRS senders. An address of this length still fits on one header line of a
 * notice.
 */
const PATH_LIMIT = 900
const DOMAIN_LIMIT = 253
const LABEL_LIMIT = 63

/** Matches control, invisible and direction-changing characters, line separators, and replacement characters of bytes that are no UTF-8. */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u00ad\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff]/u

const QUOTED = /^"(?:[^"\\]|\\.)*"$/u
/** An unquoted address. Dots may be anywhere, because some providers have assigned such addresses. */
const UNQUOTED = /^[^\s"(),:;<>@[\\\]]+(?:@[^\s"(),:;<>@[\\\]]+)*$/u
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/
/** A source route before an address: `@relay.example,@other.example:`. It is accepted and ignored (RFC 5321 §4.1.2 and appendix C). */
const SOURCE_ROUTE = /^@[^\s,:@"]+(?:,@[^\s,:@"]+)*:/

/** Splits the path from the parameters after it. Undefined when there is no path. */
export function splitPath(text: string): { readonly path: string; readonly rest: string } | undefined {
  const bracketed = text.startsWith('<')
  const match = bracketed
    ? /^<((?:[^"<>]|"(?:[^"\\]|\\.)*")*)>(?= |$)/u.exec(text)
    : /^((?:[^\s"<>]|"(?:[^"\\]|\\.)*")+)(?= |$)/u.exec(text)
  if (match === null) return undefined
  return { path: match[1] ?? '', rest: text.slice(match[0].length).trim() }
}

export interface PathAddress {
  /** The normal form. */
  readonly address: string
  /** The normal form without a domain that the path does not have. */
  readonly given: string
}

/** Returns the address in a path in its normal form; undefined when malformed. An address without a domain gets `origin`. */
export const parseAddress = (path: string, origin: string): string | undefined => parsePath(path, origin)?.address

/**
 * Returns the address in a path; undefined when malformed. The domain is in lower case with A-labels, Unicode in the local part in NFC. An
 * address without a domain gets `origin`. All envelopes of new mail are made of these addresses, so that equal addresses are equal text.
 */
export function parsePath(path: string, origin: string): PathAddress | undefined {
  const address = path.replace(SOURCE_ROUTE, '').normalize('NFC')
  if (address === '' || UNSAFE.test(address) || Buffer.byteLength(address) > PATH_LIMIT) return undefined
  const at = domainMark(address)
  const local = at < 0 ? address : address.slice(0, at)
  const domain = parseDomain(at < 0 ? origin : address.slice(at + 1))
  if (domain === undefined) return undefined
  if (!QUOTED.test(local) && !UNQUOTED.test(local)) return undefined
  const normal = normalizeAddress(`${local}@${domain}`)
  return { address: normal, given: at < 0 ? normal.slice(0, -domain.length - 1) : normal }
}

/** Position of the last `@` outside quotes; -1 when there is none. */
function domainMark(address: string): number {
  const afterQuotes = address.lastIndexOf('"')
  const at = address.lastIndexOf('@')
  return at > afterQuotes ? at : -1
}

/** A domain in lower case with A-labels and without a final dot, or an address literal; undefined when malformed. */
export function parseDomain(text: string): string | undefined {
  if (text.startsWith('[')) return parseLiteral(text)
  const domain = (isInternational(text) ? domainToASCII(text) : text.toLowerCase()).replace(/\.$/, '')
  if (domain === '' || domain.length > DOMAIN_LIMIT || isIPv4(domain)) return undefined
  const labels = domain.split('.')
  return labels.every((label) => label.length <= LABEL_LIMIT && LABEL.test(label)) ? domain : undefined
}

function parseLiteral(text: string): string | undefined {
  const literal = /^\[(?:(ipv6:)([0-9a-f:.]+)|([0-9.]+))\]$/i.exec(text)
  if (literal === null) return undefined
  const [, , v6, v4] = literal
  if (v6 !== undefined) return isIPv6(v6) ? `[ipv6:${v6.toLowerCase()}]` : undefined
  return v4 !== undefined && isIPv4(v4) ? `[${v4}]` : undefined
}

/**
 * True when the local part contains a route (`user@other`, `user%other`, `other!user`). Such an address is never taken for one in
 * relay_domains (Postfix allow_untrusted_routing = no).
 */
export const isRouted = (address: string): boolean => /[@%!]/.test(address.slice(0, address.lastIndexOf('@')))
