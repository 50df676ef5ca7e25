/** Parses the right-hand sides of transport_maps (transport(5)) and lists of next hops. Pure: no lookups. */
import { formatNextHop, parseNextHop, type NextHop, type Origin } from './values/next-hop.ts'
import type { Config } from './options.ts'

/** A right-hand side of transport_maps. `unchanged` stands for the route that the address has without the table. */
export type Transport =
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'smtp' | 'lmtp'; readonly nexthops: readonly NextHop[] }
  | { readonly kind: 'discard'; readonly text: string }
  | { readonly kind: 'error'; readonly status: string; readonly text: string }

/** Port of LMTP next hops without a port of their own. */
export const LMTP_PORT = 24
type RoutingConfig = Pick<Config, 'smtp_tcp_port'>

/** Parses next hops; throws an Error that names `origin` when one of them is invalid. */
export function parseNextHops(texts: readonly string[], origin: Origin, port: number, mx: boolean): NextHop[] {
  return texts.map((text) => {
    const hop = parseNextHop(text, { port, origin, mx })
    if (hop === undefined) throw new Error(`${origin}: ${JSON.stringify(text)} is not a next hop like "[host]:port" or "domain"`)
    return hop
  })
}

export const splitHops = (text: string): string[] => text.split(/[,\s]+/).filter((part) => part !== '')

function parseLmtp(rest: string, origin: Origin): Transport {
  if (rest.startsWith('unix:/')) {
    return { kind: 'lmtp', nexthops: [{ host: rest.slice('unix:'.length), port: 0, mx: false, origin }] }
  }
  return { kind: 'lmtp', nexthops: parseNextHops(splitHops(rest.replace(/^inet:/, '')), 'transport_maps', LMTP_PORT, false) }
}

/** Parses the text after `error:` or `retry:`. `unstated` is the status of a text without one. */
function parseError(rest: string, unstated: string): Transport {
  const match = /^([45]\.\d{1,3}\.\d{1,3})(?:\s+(.*))?$/s.exec(rest)
  return { kind: 'error', status: match?.[1] ?? unstated, text: (match === null ? rest : match[2]) || 'Address is undeliverable' }
}

/**
 * Parses `transport:nexthop` of the parameter `origin`; throws an Error when it is invalid. Without a transport, only the next hop is replaced. Without
 * both, mail is routed as if transport_maps had no entry (transport(5)).
 */
export function parseTransport(text: string, config: RoutingConfig, origin: Origin = 'transport_maps'): Transport {
  const colon = text.indexOf(':')
  const rest = text.slice(colon + 1).trim()
  if (colon <= 0 && rest === '') return { kind: 'unchanged' }
  switch (colon < 0 ? 'none' : text.slice(0, colon).trim().toLowerCase()) {
    case '':
    case 'smtp':
    case 'relay':
      return { kind: 'smtp', nexthops: parseNextHops(splitHops(rest), origin, config.smtp_tcp_port, true) }
    case 'lmtp':
      return parseLmtp(rest, origin)
    case 'discard':
      return { kind: 'discard', text: rest }
    case 'error':
      return parseError(rest, '5.0.0')
    case 'retry':
      return parseError(rest, '4.0.0')
    default:
      throw new Error(`${origin}: ${JSON.stringify(text)} names no transport; known are smtp:, relay:, lmtp:, discard:, error: and retry:`)
  }
}

/** Name of the destination with these next hops: the domain alone for delivery to its mail exchangers, `smtp:[host]:port` otherwise. */
export function destinationOf(transport: 'smtp' | 'lmtp', nexthops: readonly NextHop[], { smtp_tcp_port: port }: RoutingConfig): string {
  const [first] = nexthops
  const isDomain = first !== undefined && nexthops.length === 1 && first.mx && first.port === port && transport === 'smtp'
  return isDomain ? first.host : `${transport}:${nexthops.map((hop) => formatNextHop(hop, port)).join(',')}`
}
