/**
 * Next hops as an operator writes them: `host`, `host:port`, `[host]`, `[host]:port`, `[1.2.3.4]`, `[IPv6:2001:db8::1]`.
 * Brackets turn off the MX look-up (postfix transport(5)).
 */
import { unbracket } from '../mail/address.ts'

/** Where a next hop came from: what was configured may lead anywhere, what a sender chose may not. */
export type Origin = 'recipient' | 'transport_maps' | 'relayhost' | 'smtp_fallback_relay'

export interface NextHop {
  /** A name, an address, or the path of a Unix socket (LMTP); lower case, without brackets. */
  readonly host: string
  /** 0 for a Unix socket. */
  readonly port: number
  /** Look up MX records; else the addresses of the host itself. */
  readonly mx: boolean
  readonly origin: Origin
}

interface Defaults {
  readonly port: number
  readonly origin: Origin
  /** The protocol uses MX records at all; LMTP does not. */
  readonly mx: boolean
}

/** Reads a next hop; undefined when it is not one. A slash never passes: it would name a Unix socket. */
export function parseNextHop(text: string, { port, origin, mx }: Defaults): NextHop | undefined {
  const match = /^(\[[^\]\s/]+\]|[^\s:[\]/]+)(?::(\d{1,5}))?$/.exec(text.toLowerCase())
  const given = match?.[2] === undefined ? port : Number(match[2])
  if (match?.[1] === undefined || given < 1 || given > 65_535) return undefined
  return { host: unbracket(match[1]), port: given, mx: mx && !match[1].startsWith('['), origin }
}

/** A next hop in the form that names a destination: `[host]:port`, `host:port`, or a bare domain. */
export function formatNextHop({ host, port, mx }: NextHop, defaultPort: number): string {
  if (host.startsWith('/')) return `unix:${host}`
  if (!mx) return `[${host}]:${port}`
  return port === defaultPort ? host : `${host}:${port}`
}
