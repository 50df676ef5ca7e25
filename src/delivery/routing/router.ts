/**
 * Routes an address by transport_maps, by the sender (sender_dependent_default_transport_maps, sender_dependent_relayhost_maps), by
 * relayhost, or to the mail exchangers of its domain. The route names the destination, which is the unit for counting and throttling
 * mail. Makes no DNS lookups.
 */
import { ownTable } from '../../config/destination-settings.ts'
import type { Config } from '../../config/options.ts'
import { domainOf, lookupKeys } from '../../mail/address.ts'
import type { DestinationName } from '../../mail/message.ts'
import { parseNextHop, type NextHop } from '../../config/values/next-hop.ts'
import { DoubleBounce } from '../../config/double-bounce.ts'
import { destinationOf, parseNextHops, parseTransport, type Transport } from '../../config/transport-map.ts'
import type { KnownTransport } from '../../config/sender-routes.ts'
import { errorMessage } from '../../system/caught-error.ts'
import { partsOf, userForms, type ExtensionRules } from '../../rewriting/address-keys.ts'
import { addressRules } from '../../rewriting/lookup-rules.ts'
import type { LookupTable } from '../../rewriting/lookup-table.ts'
import { MALFORMED, SenderRouting, type SenderOverride } from './sender-routing.ts'
import type { RoutingTables } from './routing-tables.ts'

interface RouteBase {
  readonly destination: DestinationName
  readonly domain: string
}

export type Route =
  | (RouteBase & {
      readonly transport: 'smtp' | 'lmtp'
      /** Next hops in the order in which they are tried. Each may have several hosts. */
      readonly nexthops: readonly NextHop[]
      /** Next hops of smtp_fallback_relay, tried when `nexthops` cannot be found or reached. */
      readonly fallback: readonly NextHop[]
    })
  | (RouteBase & { readonly transport: 'discard'; readonly text: string })
  | (RouteBase & { readonly transport: 'error'; readonly status: string; readonly text: string })

type RelayTransport = Extract<Transport, { nexthops: unknown }>

/** Maximum number of cached routes, by domain. A full cache is emptied. */
const CACHE_SIZE = 10_000

const discarded = (address: string, domain: string): Route => ({
  destination: `discard:${address}`,
  domain,
  transport: 'discard',
  text: 'undeliverable postmaster notification',
})

export class Router {
  readonly #config: Config
  readonly #transports: ReadonlyMap<string, Transport>
  /** The tables that transport_maps names; absent where it is a TOML table. */
  readonly #tables: LookupTable | undefined
  /** Parsed values of the tables. */
  readonly #parsed = new Map<string, Transport>()
  /** True when transport_maps may have entries for full addresses, which are looked up first (transport(5)). */
  readonly #hasAddresses: boolean
  readonly #rules: ExtensionRules
  readonly #relayhost: readonly NextHop[]
  readonly #fallback: readonly NextHop[]
  readonly #routes = new Map<string, Route>()
  /** Notices addressed to it are discarded. */
  readonly #doubleBounce: DoubleBounce

  readonly #bySender: SenderRouting

  /** Throws an error for the operator when a next hop or a transport in the configuration is malformed. */
  constructor(config: Config, routingTables: RoutingTables, doubleBounce = new DoubleBounce(config)) {
    const port = config.smtp_tcp_port
    this.#config = config
    this.#rules = addressRules(config)
    this.#bySender = new SenderRouting(config, routingTables)
    this.#doubleBounce = doubleBounce
    this.#transports = new Map([...config.transport_maps].map(([key, text]) => [key, parseTransport(text, config)]))
    this.#tables = routingTables.get('transport_maps')
    this.#hasAddresses = this.#tables !== undefined || [...this.#transports.keys()].some((key) => key.includes('@'))
    this.#relayhost = parseNextHops(config.relayhost, 'relayhost', port, true)
    this.#fallback = parseNextHops(config.smtp_fallback_relay, 'smtp_fallback_relay', port, true)
  }

  /** The route of a recipient's address in mail from a sender, which is empty for the null sender. */
  route(address: string, sender: string): Route {
    const domain = domainOf(address) || this.#config.myorigin.toLowerCase()
    if (this.#doubleBounce.has(address)) return discarded(address.toLowerCase(), domain)
    const own = this.#hasAddresses ? this.#ofAddress(address) : undefined
    if (own !== undefined && own.kind !== 'unchanged') return this.#routeBy(own, domain, null)
    const ofSender = this.#bySender.find(sender, domain)
    const isOverruled = own === undefined && ofSender !== undefined && this.#transportOf(domain) !== undefined
    if (ofSender !== undefined && !isOverruled) return this.#routeBySender(ofSender, domain)
    return own === undefined ? this.#routeOfDomain(domain) : this.#routeBy(this.#default, domain, null)
  }

  /** True when some recipients may have the transport error or retry. */
  get hasErrors(): boolean {
    return this.#tables !== undefined || this.#bySender.hasTransports || [...this.#transports.values()].some(({ kind }) => kind === 'error')
  }

  /** The value for an address, or for the address without its extension. */
  #ofAddress(address: string): Transport | undefined {
    const parts = partsOf(address, this.#rules)
    for (const { key, isWhole } of userForms(parts, parts.domain)) {
      const found = this.#find(key.toLowerCase(), isWhole ? key : undefined)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** The route of all addresses of a domain without an entry of their own, for senders without an override. */
  #routeOfDomain(domain: string): Route {
    const known = this.#routes.get(domain)
    if (known !== undefined) return known
    if (this.#routes.size >= CACHE_SIZE) this.#routes.clear()
    const route = this.#routeBy(this.#transportOf(domain) ?? this.#default, domain, ownTable(this.#config, domain))
    this.#routes.set(domain, route)
    return route
  }

  /** The next hop is the destination, also for a recipient domain with a table of its own, which other senders reach otherwise. */
  #routeBySender({ transport, relayhost }: SenderOverride, domain: string): Route {
    if (transport !== undefined && !('nexthops' in transport)) return this.#routeBy(transport, domain, null)
    const nexthops = transport === undefined || transport.nexthops.length === 0 ? (relayhost ?? this.#relayhost) : transport.nexthops
    return this.#routeBy({ kind: transport?.kind ?? 'smtp', nexthops }, domain, null)
  }

  get #default(): RelayTransport {
    return { kind: 'smtp', nexthops: this.#relayhost }
  }

  /** Builds a route. `table` is the recipient domain's own [destination] table, which makes the domain a destination of its own. */
  #routeBy(transport: KnownTransport, domain: string, table: string | null): Route {
    if ('nexthops' in transport) return this.#relay(transport, domain, table)
    const destination = table === null ? `${transport.kind}:${domain}` : domain
    const base = { destination, domain }
    return transport.kind === 'error'
      ? { ...base, transport: 'error', status: transport.status, text: transport.text }
      : { ...base, transport: 'discard', text: transport.text }
  }

  /** The value of a key. `whole` is a full address, which tables of patterns match. Mail waits (4.3.5) while a table cannot be used. */
  #find(key: string, whole?: string): Transport | undefined {
    const entry = this.#transports.get(key)
    if (entry !== undefined || this.#tables === undefined) return entry
    try {
      const text = this.#tables.find(key, whole)
      return text === undefined ? undefined : this.#parse(text)
    } catch (error) {
      return { kind: 'error', status: MALFORMED, text: errorMessage(error) }
    }
  }

  #parse(text: string): Transport {
    const known = this.#parsed.get(text)
    if (known !== undefined) return known
    const transport = parseTransport(text, this.#config)
    if (this.#parsed.size >= CACHE_SIZE) this.#parsed.clear()
    this.#parsed.set(text, transport)
    return transport
  }

  /** The transport of a domain by transport_maps; undefined when the table does not change its route. */
  #transportOf(domain: string): KnownTransport | undefined {
    for (const key of lookupKeys(domain)) {
      const transport = this.#find(key)
      if (transport !== undefined) return transport.kind === 'unchanged' ? undefined : transport
    }
    return undefined
  }

  #relay({ kind: transport, nexthops: configured }: RelayTransport, domain: string, table: string | null): Route {
    // An empty next hop stands for the recipient domain (transport(5)).
    const nexthops = configured.length > 0 ? configured : this.#ownHops(domain)
    const destination = table === null ? this.#nameOf(transport, nexthops, domain) : domain
    const fallback = transport === 'smtp' ? this.#fallback : []
    return { transport, domain, destination, nexthops, fallback }
  }

  /** The domain as a next hop. None when the domain is malformed or contains a port, which a sender may not choose. */
  #ownHops(domain: string): readonly NextHop[] {
    const own = parseNextHop(domain, { port: this.#config.smtp_tcp_port, origin: 'recipient', mx: true })
    return own === undefined || /:[\w-]+$/.test(domain) ? [] : [own]
  }

  #nameOf(transport: 'smtp' | 'lmtp', nexthops: readonly NextHop[], domain: string): DestinationName {
    return nexthops.length === 0 ? domain : destinationOf(transport, nexthops, this.#config)
  }
}
