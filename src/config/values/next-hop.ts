/**
 * Next hops in Postfix's syntax: `host`, `host:port`, `host:service`, `[host]`, `[host]:port`, `[1.2.3.4]`, `[IPv6:2001:db8::1]`.
 * Brackets disable the MX lookup (transport(5)).
 */
import { unbracket } from '../../mail/address.ts'

/** Source of a next hop. A configured next hop may have any address; a recipient's domain may have only public addresses. */
export type Origin =
  | 'recipient'
  | 'transport_maps'
  | 'relayhost'
  | 'smtp_fallback_relay'
  | 'sender_dependent_relayhost_maps'
  | 'sender_dependent_default_transport_maps'

export interface NextHop {
  /** Host name, address, or path of a Unix socket (LMTP). Lower case, without brackets. */
  readonly host: string
  /** TCP port; 0 for a Unix socket. */
  readonly port: number
  /** True to look up MX records; false to use the addresses of the host itself. */
  readonly mx: boolean
  readonly origin: Origin
}

interface Defaults {
  readonly port: number
  readonly origin: Origin
  /** True when the protocol uses MX records. LMTP does not. */
  readonly mx: boolean
}

/** Names of services that may replace a port (services(5)). */
const SERVICES: Readonly<Record<string, number>> = { smtp: 25, lmtp: 24, submission: 587, submissions: 465, smtps: 465, urd: 465 }

/** Parses a next hop. Undefined for invalid text. A slash is invalid, because it would name a Unix socket. */
export function parseNextHop(text: string, { port, origin, mx }: Defaults): NextHop | undefined {
  const match = /^(\[[^\]\s/]+\]|[^\s:[\]/]+)(?::(\d{1,5}|[a-z][a-z-]*))?$/.exec(text.toLowerCase())
  const given = match?.[2] === undefined ? port : (SERVICES[match[2]] ?? Number(match[2]))
  if (match?.[1] === undefined || !(given >= 1 && given <= 65_535)) return undefined
  return { host: unbracket(match[1]), port: given, mx: mx && !match[1].startsWith('['), origin }
}

/** A next hop as it appears in a destination's name: `[host]:port`, `host:port`, or only the domain. */
export function formatNextHop({ host, port, mx }: NextHop, defaultPort: number): string {
  if (host.startsWith('/')) return `unix:${host}`
  if (!mx) return `[${host}]:${port}`
  return port === defaultPort ? host : `${host}:${port}`
}
