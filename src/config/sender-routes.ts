/** Parses the values of sender_dependent_relayhost_maps and sender_dependent_default_transport_maps (postconf(5)). Pure: no lookups. */
import type { NextHop } from './values/next-hop.ts'
import type { Config } from './options.ts'
import { parseNextHops, parseTransport, splitHops, type Transport } from './transport-map.ts'

type RoutingConfig = Pick<Config, 'smtp_tcp_port'>

export type KnownTransport = Exclude<Transport, { kind: 'unchanged' }>

/** True for a value that ends the search and leaves the route as it is. */
const isDunno = (text: string): boolean => text.trim().toUpperCase() === 'DUNNO'

/** Parses next hops; null for DUNNO. Throws an Error that names the parameter. */
export function parseSenderRelayhost(text: string, config: RoutingConfig): readonly NextHop[] | null {
  if (isDunno(text)) return null
  const hops = parseNextHops(splitHops(text), 'sender_dependent_relayhost_maps', config.smtp_tcp_port, true)
  if (hops.length === 0) throw new Error('sender_dependent_relayhost_maps: a value is empty; write a next hop like "[host]:port", or DUNNO')
  return hops
}

/** Parses `transport` or `transport:nexthop`, the syntax of Postfix's default_transport; null for DUNNO. Throws an Error. */
export function parseSenderTransport(text: string, config: RoutingConfig): KnownTransport | null {
  if (isDunno(text)) return null
  const name = 'sender_dependent_default_transport_maps'
  const transport = parseTransport(text.includes(':') ? text : `${text}:`, config, name)
  if (transport.kind !== 'unchanged' && !text.startsWith(':')) return transport
  throw new Error(`${name}: ${JSON.stringify(text)} names no transport; write one, such as smtp:[host]:25, or DUNNO`)
}
