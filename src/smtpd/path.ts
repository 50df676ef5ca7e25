/**
 * The reverse-path of MAIL and the forward-path of RCPT (RFC 5321 §4.1.2): read strictly enough that every address that
 * passes can be put on a wire, in a header and in a log again, and leniently enough for what honest clients send.
 */
import { isIPv6, isIPv4 } from 'node:net'
import { domainToASCII } from 'node:url'
import { isInternational } from '../mail/address.ts'

/** Octets (RFC 5321 §4.5.3.1). */
const LOCAL_PART_LIMIT = 64
const DOMAIN_LIMIT = 255
const PATH_LIMIT = 254
const LABEL_LIMIT = 63

/** Controls, invisible and direction-changing characters, line separators, and what stood for bytes that are no UTF-8. */
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u00ad\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff]/u

const QUOTED = /^"(?:[^"\\]|\\.)*"$/u
/** Dots may stand anywhere, as some providers have given such addresses out. */
const UNQUOTED = /^[^\s"(),:;<>@[\\\]]+(?:@[^\s"(),:;<>@[\\\]]+)*$/u
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/
/** `@relay.example,@other.example:` before an address: accepted and ignored (RFC 5321 §4.1.2 and appendix C). */
const SOURCE_ROUTE = /^@[^\s,:@"]+(?:,@[^\s,:@"]+)*:/

/** Takes the path off the front of the arguments; undefined when there is none. */
export function splitPath(text: string): { readonly path: string; readonly rest: string } | undefined {
  const bracketed = text.startsWith('<')
  const match = bracketed
    ? /^<((?:[^"<>]|"(?:[^"\\]|\\.)*")*)>(?= |$)/u.exec(text)
    : /^((?:[^\s"<>]|"(?:[^"\\]|\\.)*")+)(?= |$)/u.exec(text)
  if (match === null) return undefined
  return { path: match[1] ?? '', rest: text.slice(match[0].length).trim() }
}

/**
 * The address in a path, domain in lower case and A-labels, local part as given (Unicode in NFC); undefined when it is
 * none. An address without a domain gets `origin`.
 */
export function parseAddress(path: string, origin: string): string | undefined {
  const address = path.replace(SOURCE_ROUTE, '').normalize('NFC')
  if (address === '' || UNSAFE.test(address) || Buffer.byteLength(address) > PATH_LIMIT) return undefined
  const at = domainMark(address)
  const local = at < 0 ? address : address.slice(0, at)
  const domain = parseDomain(at < 0 ? origin : address.slice(at + 1))
  if (domain === undefined || Buffer.byteLength(local) > LOCAL_PART_LIMIT) return undefined
  return QUOTED.test(local) || UNQUOTED.test(local) ? `${local}@${domain}` : undefined
}

/** The last `@` that is not within quotes. */
function domainMark(address: string): number {
  const afterQuotes = address.lastIndexOf('"')
  const at = address.lastIndexOf('@')
  return at > afterQuotes ? at : -1
}

function parseDomain(text: string): string | undefined {
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

/** Does the local part itself say where to go (`user@other`, `user%other`, `other!user`)? Such mail is relayed for nobody. */
export const isRouted = (address: string): boolean => /[@%!]/.test(address.slice(0, address.lastIndexOf('@')))
