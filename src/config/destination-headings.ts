/**
 * Headings of `[destination."…"]` tables: a recipient domain, a `.parent` domain, or a next hop, with or without its transport. States
 * which headings name a destination, and which ones no destination can have. Pure.
 */
import { isIP } from 'node:net'
import { unbracket } from '../mail/address.ts'
import { parseDomain } from '../mail/address-path.ts'
import type { TableSource } from './values/lookup-tables.ts'
import { formatNextHop, type NextHop } from './values/next-hop.ts'
import type { Config } from './options.ts'
import { parseSenderRelayhost, parseSenderTransport } from './sender-routes.ts'
import { valuesOf } from './values/lookup-tables.ts'
import { destinationOf, LMTP_PORT, parseNextHops, parseTransport, splitHops, type Transport } from './transport-map.ts'

type Ports = Pick<Config, 'smtp_tcp_port'>

/**
 * Headings that name a destination, most specific first: its name, its next hop without the transport, and the host in brackets without
 * the default port. The parents of a domain are not among them.
 */
export function headingsOf(destination: string, { smtp_tcp_port }: Ports): readonly string[] {
  const [, transport, hops = ''] = /^(smtp|lmtp):(.+)$/.exec(destination) ?? []
  if (transport === undefined) return [destination]
  const port = `:${transport === 'smtp' ? smtp_tcp_port : LMTP_PORT}`
  const isDefault = hops.endsWith(`]${port}`) && !hops.includes(',')
  return [destination, hops, ...(isDefault ? [hops.slice(0, -port.length)] : [])]
}

const isDomainOrParent = (heading: string): boolean => {
  const domain = heading.replace(/^\./, '')
  return parseDomain(domain) === domain
}

function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}

/** A heading with a transport of transport_maps, and the text after the colon. */
const TRANSPORT = /^(smtp|relay|lmtp|error|retry|discard):(.*)$/

/** The next hops that a heading lists, with or without a transport; undefined when it lists none. */
function listedHops(heading: string, config: Ports): Extract<Transport, { nexthops: unknown }> | undefined {
  const text = heading.startsWith('unix:') ? `lmtp:${heading}` : heading
  const transport = parsed((): Transport => {
    if (TRANSPORT.test(text)) return parseTransport(text, config)
    const hops = text.includes(',') ? splitHops(text) : [text]
    return { kind: 'smtp', nexthops: parseNextHops(hops, 'relayhost', config.smtp_tcp_port, true) }
  })
  return transport !== undefined && 'nexthops' in transport && transport.nexthops.length > 0 ? transport : undefined
}

/** Names of destinations that a heading, other than a domain, may have been meant for. */
function meant(heading: string, config: Ports): readonly string[] {
  const [, kind = '', rest = ''] = TRANSPORT.exec(heading) ?? []
  const domain = parseDomain(rest)
  const named = kind === 'retry' ? 'error' : kind
  // The names of these destinations have the recipient domain: mail that is refused, discarded, or sent by `lmtp:` without a next hop.
  const ofDomain = domain !== undefined && ['lmtp', 'error', 'discard'].includes(named) ? [`${named}:${domain}`] : []
  const listed = listedHops(heading, config)
  const ofHops = listed === undefined ? [] : [destinationOf(listed.kind, listed.nexthops, config)]
  return [...ofDomain, ...ofHops.filter((name) => name.includes(':') || isDomainOrParent(name))]
}

/** A heading that names destinations and has the same meaning; undefined when there is none. */
function corrected(heading: string, config: Ports): string | undefined {
  const [, start = '', name = ''] = /^(?:\*?(\.)|[^@]*@)?(.*)$/.exec(heading) ?? []
  const domain = parseDomain(name)
  return domain === undefined ? meant(heading, config)[0] : `${start}${domain}`
}

/** States that no destination can have a heading, and what to write; null for one that names destinations. `heading` is in lower case. */
export function headingMistake(heading: string, config: Ports): string | null {
  if (isDomainOrParent(heading)) return null
  if (meant(heading, config).some((name) => headingsOf(name, config).includes(heading))) return null
  const wrong = 'is no recipient domain, .parent or next hop'
  if (heading === '*') return `${wrong}: set a parameter for all destinations outside of the tables`
  const better = corrected(heading, config)
  return better === undefined ? wrong : `${wrong}: write ${JSON.stringify(better)}`
}

/** All transports that the configuration contains; null when some are in files or made from patterns. */
function transportsOf(config: Config): readonly Transport[] | null {
  const { transport_maps, transport_tables, sender_dependent_relayhost_maps, sender_dependent_default_transport_maps } = config
  const isKnown = ({ kind }: TableSource) => kind === 'static' || kind === 'inline'
  const tables = [...transport_tables, ...sender_dependent_relayhost_maps, ...sender_dependent_default_transport_maps]
  if (!tables.every(isKnown)) return null
  const smtp = (nexthops: ReturnType<typeof parseSenderRelayhost>): Transport => ({ kind: 'smtp', nexthops: nexthops ?? [] })
  return [
    smtp(parseNextHops(config.relayhost, 'relayhost', config.smtp_tcp_port, true)),
    ...[...transport_maps.values(), ...valuesOf(transport_tables)].map((text) => parseTransport(text, config)),
    ...valuesOf(sender_dependent_relayhost_maps).map((text) => smtp(parseSenderRelayhost(text, config))),
    ...valuesOf(sender_dependent_default_transport_maps).map((text) => parseSenderTransport(text, config) ?? smtp(null)),
  ]
}

interface ConfiguredHops {
  readonly hops: readonly NextHop[]
  /** False when some routes are in files or made from patterns, so that their next hops are missing here. */
  readonly areAll: boolean
}

/** The next hops of relayhost and of the routes that the configuration contains. */
export function configuredHops(config: Config): ConfiguredHops {
  const relayhost = parseNextHops(config.relayhost, 'relayhost', config.smtp_tcp_port, true)
  const transports = transportsOf(config)
  const others = (transports ?? []).flatMap((transport) => ('nexthops' in transport && transport.kind === 'smtp' ? transport.nexthops : []))
  const hops = new Map([...relayhost, ...others].map((hop) => [formatNextHop(hop, 0), hop]))
  return { hops: [...hops.values()], areAll: transports !== null }
}

/**
 * Headings of next hops to which no route leads, so that the tables apply to no mail. Recipient domains are never among them. Empty when
 * routes are in files.
 */
export function unusedHeadings(config: Config): readonly string[] {
  const transports = config.destination.size === 0 ? null : transportsOf(config)
  if (transports === null) return []
  const kinds = new Set(transports.map(({ kind }) => kind))
  const hopLists = transports.flatMap((transport) => ('nexthops' in transport && transport.nexthops.length > 0 ? [transport.nexthops] : []))
  // A transport without a next hop takes the next hop of the sender, or relayhost.
  const sending = kinds.has('lmtp') ? (['smtp', 'lmtp'] as const) : (['smtp'] as const)
  const used = new Set(sending.flatMap((kind) => hopLists.flatMap((hops) => headingsOf(destinationOf(kind, hops, config), config))))
  const ofRecipients = (name: string): boolean => {
    const [, kind = '', rest = ''] = TRANSPORT.exec(name) ?? []
    return kind === 'smtp' ? isLiteralHop(rest, config.smtp_tcp_port) : kinds.has(kind as Transport['kind']) && parseDomain(rest) === rest
  }
  return [...config.destination.keys()].filter(
    (heading) => !used.has(heading) && !isDomainOrParent(heading) && !meant(heading, config).some(ofRecipients),
  )
}

/** True for the next hop of a recipient at an address literal (RFC 5321 §4.1.3). */
const isLiteralHop = (hop: string, port: number): boolean =>
  hop.endsWith(`]:${port}`) && isIP(unbracket(hop.slice(0, -`:${port}`.length))) !== 0
