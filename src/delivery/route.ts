/**
 * Which way mail for an address goes: transport_maps, relayhost, else the mail exchangers of its domain; and what the
 * destination is called by which it is counted and throttled. Pure: no look-ups happen here.
 */
import { ownTable, settingsFor, type EffectiveSettings } from '../config/destination-settings.ts'
import type { Config } from '../config/options.ts'
import { domainOf, lookupKeys } from '../mail/address.ts'
import type { DestinationName } from '../queue/message.ts'
import { formatNextHop, parseNextHop, type NextHop, type Origin } from './next-hop.ts'

interface RouteBase {
  readonly destination: DestinationName
  /** The recipient domain that the route was made for. */
  readonly domain: string
  readonly settings: EffectiveSettings
}

export type Route =
  | (RouteBase & {
      readonly transport: 'smtp' | 'lmtp'
      /** Tried in this order; each may stand for several hosts. */
      readonly nexthops: readonly NextHop[]
      /** Tried when those cannot be found or reached. */
      readonly fallback: readonly NextHop[]
    })
  | (RouteBase & { readonly transport: 'discard'; readonly text: string })
  | (RouteBase & { readonly transport: 'error'; readonly status: string; readonly text: string })

/** A right-hand side of transport_maps. */
type Transport =
  | { readonly kind: 'smtp' | 'lmtp'; readonly nexthops: readonly NextHop[] }
  | { readonly kind: 'discard'; readonly text: string }
  | { readonly kind: 'error'; readonly status: string; readonly text: string }

const LMTP_PORT = 24
/** Routes remembered by domain; forgotten all at once when there are more. */
const REMEMBERED = 10_000

type RoutingConfig = Pick<Config, 'smtp_tcp_port'>

function parseNextHops(texts: readonly string[], origin: Origin, port: number, mx: boolean): NextHop[] {
  return texts.map((text) => {
    const hop = parseNextHop(text, { port, origin, mx })
    if (hop === undefined) throw new Error(`${origin}: ${JSON.stringify(text)} is not a next hop like "[host]:port" or "domain"`)
    return hop
  })
}

const split = (text: string): string[] => text.split(/[,\s]+/).filter((part) => part !== '')

function parseLmtp(rest: string): Transport {
  if (rest.startsWith('unix:/')) {
    return { kind: 'lmtp', nexthops: [{ host: rest.slice('unix:'.length), port: 0, mx: false, origin: 'transport_maps' }] }
  }
  return { kind: 'lmtp', nexthops: parseNextHops(split(rest.replace(/^inet:/, '')), 'transport_maps', LMTP_PORT, false) }
}

function parseError(rest: string): Transport {
  const match = /^([45]\.\d{1,3}\.\d{1,3})(?:\s+(.*))?$/s.exec(rest)
  return { kind: 'error', status: match?.[1] ?? '5.0.0', text: (match === null ? rest : match[2]) || 'Address is undeliverable' }
}

/** Reads `transport:nexthop`; throws with a sentence for the operator when it is not one. */
export function parseTransport(text: string, config: RoutingConfig): Transport {
  const colon = text.indexOf(':')
  const rest = text.slice(colon + 1).trim()
  switch (colon < 0 ? '' : text.slice(0, colon).trim().toLowerCase()) {
    case 'smtp':
      return { kind: 'smtp', nexthops: parseNextHops(split(rest), 'transport_maps', config.smtp_tcp_port, true) }
    case 'lmtp':
      return parseLmtp(rest)
    case 'discard':
      return { kind: 'discard', text: rest }
    case 'error':
      return parseError(rest)
    default:
      throw new Error(`transport_maps: ${JSON.stringify(text)} names no transport; known are smtp:, lmtp:, discard: and error:`)
  }
}

export class Router {
  readonly #config: Config
  readonly #transports: ReadonlyMap<string, Transport>
  readonly #relayhost: readonly NextHop[]
  readonly #fallback: readonly NextHop[]
  readonly #routes = new Map<string, Route>()
  /** Nothing is done about notices that come back from the postmaster. */
  readonly #doubleBounce: string

  /** Throws with a sentence for the operator when the configuration names a next hop or transport that cannot be. */
  constructor(config: Config) {
    const port = config.smtp_tcp_port
    this.#config = config
    this.#doubleBounce = `${config.double_bounce_sender}@${config.myhostname}`.toLowerCase()
    this.#transports = new Map([...config.transport_maps].map(([key, text]) => [key, parseTransport(text, config)]))
    this.#relayhost = parseNextHops(config.relayhost, 'relayhost', port, true)
    this.#fallback = parseNextHops(config.smtp_fallback_relay, 'smtp_fallback_relay', port, true)
  }

  route(address: string): Route {
    const domain = domainOf(address) || this.#config.myorigin.toLowerCase()
    if (address.length === this.#doubleBounce.length && address.toLowerCase() === this.#doubleBounce) return this.#sink(domain)
    const known = this.#routes.get(domain)
    if (known !== undefined) return known
    if (this.#routes.size >= REMEMBERED) this.#routes.clear()
    const route = this.#decide(domain)
    this.#routes.set(domain, route)
    return route
  }

  #decide(domain: string): Route {
    const transport = this.#transportOf(domain)
    if (transport === undefined) return this.#relay('smtp', domain, this.#relayhost)
    if ('nexthops' in transport) return this.#relay(transport.kind, domain, transport.nexthops)
    const destination = ownTable(this.#config, domain) === null ? `${transport.kind}:${domain}` : domain
    const base = { destination, domain, settings: settingsFor(this.#config, domain, destination) }
    return transport.kind === 'error'
      ? { ...base, transport: 'error', status: transport.status, text: transport.text }
      : { ...base, transport: 'discard', text: transport.text }
  }

  #sink(domain: string): Route {
    const destination = `discard:${this.#doubleBounce}`
    const settings = settingsFor(this.#config, domain, destination)
    return { destination, domain, settings, transport: 'discard', text: 'undeliverable postmaster notification' }
  }

  #transportOf(domain: string): Transport | undefined {
    for (const key of lookupKeys(domain)) {
      const transport = this.#transports.get(key)
      if (transport !== undefined) return transport
    }
    return undefined
  }

  #relay(transport: 'smtp' | 'lmtp', domain: string, configured: readonly NextHop[]): Route {
    // An empty next hop means the recipient domain itself (transport(5)).
    const nexthops = configured.length > 0 ? configured : this.#ownHops(domain)
    const destination = ownTable(this.#config, domain) === null ? this.#nameOf(transport, nexthops, domain) : domain
    const fallback = transport === 'smtp' ? this.#fallback : []
    return { transport, domain, destination, nexthops, fallback, settings: settingsFor(this.#config, domain, destination) }
  }

  /** The domain as a next hop; none when it is not a domain. A sender may not choose the port. */
  #ownHops(domain: string): readonly NextHop[] {
    const own = parseNextHop(domain, { port: this.#config.smtp_tcp_port, origin: 'recipient', mx: true })
    return own === undefined || /:\d+$/.test(domain) ? [] : [own]
  }

  /** The bare domain for delivery to its mail exchangers, `smtp:[host]:port` otherwise. */
  #nameOf(transport: 'smtp' | 'lmtp', nexthops: readonly NextHop[], domain: string): DestinationName {
    const port = this.#config.smtp_tcp_port
    const [first] = nexthops
    if (first === undefined) return domain
    if (nexthops.length === 1 && first.mx && first.port === port && transport === 'smtp') return first.host
    return `${transport}:${nexthops.map((hop) => formatNextHop(hop, port)).join(',')}`
  }
}
