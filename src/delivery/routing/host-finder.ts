/**
 * Finds the hosts of a next hop (RFC 5321 §5.1, RFC 7505, Postfix smtp_addr.c): the mail exchangers and their addresses, or a
 * status when there are none. It makes lookups on demand, a bounded number per next hop. It returns addresses, so that a
 * connection is made to the address that was checked.
 */
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import type { Config } from '../../config/options.ts'
import { AddressLookup, LookupFailures, nameServiceError, type AddressFailure, type FoundAddress } from './address-lookup.ts'
import { betterThanRelay, byPreference, inOrder, type Host, type Ordering } from './host-order.ts'
import { listenAt } from '../../config/values/endpoints.ts'
import { OwnHosts } from './own-address.ts'
import { asInsecure, type MxRecord, type Net, type SecureLookup } from '../../system/net.ts'
import type { NextHop } from '../../config/values/next-hop.ts'
import { isPublicAddress } from '../../system/public-address.ts'

/** Number of DNS queries that remain for one next hop. */
interface QueryBudget {
  left: number
}

/**
 * Maximum number of DNS queries per next hop. It suffices for thirty exchangers and limits the load that a hostile domain can
 * cause (Postfix limits only addresses).
 */
export const QUERIES_PER_HOP = 64

export type HostSearch =
  | { readonly kind: 'found'; readonly hosts: readonly Host[]; readonly relayIsListed: boolean }
  | {
      readonly kind: 'failed'
      readonly status: string
      readonly reason: string
      /** True when no other next hop may be tried, because the domain accepts no mail or mail for it would loop. */
      readonly final: boolean
    }

type Failed = Extract<HostSearch, { kind: 'failed' }>

const failed = (status: string, reason: string, final = false): Failed => ({ kind: 'failed', status, reason, final })
const failedLookup = ({ status, reason }: AddressFailure): Failed => failed(status, reason)

interface Exchanger {
  readonly name: string
  readonly preference: number
}

interface Exchangers {
  /** True when the domain is its own exchanger. */
  readonly only: boolean
  /** True when the answer about MX records was authentic, or none was asked for. */
  readonly secure: boolean
  readonly list: readonly Exchanger[]
}

const SMTP_PORT = 25
const TOO_MANY_LOOKUPS = 'too many DNS look-ups for one next hop'
const HOSTNAME = /^(?=.{1,253}\.?$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?$/i

export class HostFinder {
  readonly #net: Net
  readonly #config: Config
  readonly #draw: () => number
  readonly #own: OwnHosts
  readonly #lookup: AddressLookup

  constructor({ net, config, draw }: { readonly net: Net; readonly config: Config; readonly draw: () => number }) {
    this.#net = net
    this.#config = config
    this.#draw = draw
    this.#lookup = new AddressLookup(net, config)
    this.#own = new OwnHosts({
      listening: [...config.smtpd_listen, ...config.smtpd.map(({ address }) => address)].map((text) =>
        listenAt(text, 'smtpd_listen', config.inet_protocols),
      ),
      interfaces: () => net.ownAddresses(),
      proxies: config.proxy_interfaces,
      names: new Set([config.myhostname.toLowerCase(), config.smtp_helo_name.toLowerCase()]),
    })
  }

  async find(hop: NextHop, addressLimit: number, budget: QueryBudget): Promise<HostSearch> {
    const ordering = this.#ordering(addressLimit)
    if (hop.host.startsWith('/')) return found([{ name: hop.host, address: hop.host, port: 0, preference: 0, best: true }])
    if (isIP(hop.host) !== 0 && !this.#lookup.isEnabled(hop.host)) return failed('5.4.4', `inet_protocols does not allow ${hop.host}`)
    if (isIP(hop.host) !== 0)
      return this.#choose(
        hop,
        [{ name: hop.host, address: hop.host, port: hop.port, preference: 0, best: true }],
        new LookupFailures(),
        ordering,
      )
    const name = domainToASCII(hop.host)
    if (name === '' || !HOSTNAME.test(name)) return failed('5.4.4', `${hop.host} is not the name of a host or domain`)
    const itself = { only: true, secure: true, list: [{ name, preference: 0 }] }
    const exchangers = hop.mx ? await this.#exchangers(name, ordering, budget) : itself
    if ('kind' in exchangers) return exchangers
    const failures = new LookupFailures()
    const addresses = await this.#addresses(hop, exchangers, { failures, budget, limit: addressLimit })
    const search = this.#choose(hop, addresses, failures, ordering)
    if (search.kind === 'found' || exchangers.only || !this.#config.smtp_defer_if_no_mx_address_found) return search
    return { ...search, status: search.status.replace(/^5/, '4') }
  }

  #ordering(limit: number): Ordering {
    const { smtp_randomize_addresses, smtp_address_preference, smtp_balance_inet_protocols } = this.#config
    return {
      randomize: smtp_randomize_addresses,
      family: smtp_address_preference,
      balance: smtp_balance_inet_protocols,
      limit,
      draw: this.#draw,
    }
  }

  /** The mail exchangers of a domain, best preference first. A domain without MX records is its own exchanger (RFC 5321 §5.1). */
  async #exchangers(name: string, ordering: Ordering, budget: QueryBudget): Promise<Failed | Exchangers> {
    const itself = { only: true, list: [{ name, preference: 0 }] }
    if (budget.left-- <= 0) return failed('4.4.3', TOO_MANY_LOOKUPS)
    const answer = await this.#lookMx(name)
    switch (answer.kind) {
      case 'none':
        // The domain is its own exchanger, securely so when the absence of MX records is authentic.
        return { ...itself, secure: answer.secure }
      case 'failed':
        if (this.#config.ignore_mx_lookup_error) return { ...itself, secure: false }
        return failed(answer.soft ? '4.4.3' : '5.4.3', nameServiceError(name, 'MX', answer))
      case 'found':
        return usable(name, answer, ordering)
    }
  }

  /** Addresses of the exchangers, best preference first. Stops when there are enough addresses or no queries remain. */
  async #addresses(
    hop: NextHop,
    { secure: mxSecure, list: exchangers }: Pick<Exchangers, 'secure' | 'list'>,
    { failures, budget, limit }: { readonly failures: LookupFailures; readonly budget: QueryBudget; readonly limit: number },
  ): Promise<Host[]> {
    const hosts: Host[] = []
    let group = exchangers[0]?.preference
    for (const { name, preference } of exchangers) {
      // The search stops only between preferences. Hosts of equal preference share the load, and one of them may be this relay.
      if (limit > 0 && hosts.length >= limit && preference !== group) break
      group = preference
      if (budget.left < this.#lookup.queries) {
        failures.put(3, failed('4.4.3', TOO_MANY_LOOKUPS))
        break
      }
      const isAddress = isIP(name) !== 0
      if (!isAddress) budget.left -= this.#lookup.queries
      const addresses = isAddress ? this.#lookup.literal(name) : await this.#lookup.find(name, failures)
      hosts.push(...addresses.map((found) => this.#host(hop, { name, preference }, found, mxSecure)))
    }
    const best = exchangers[0]?.preference ?? 0
    return hosts.map((host) => ({ ...host, best: host.preference === best }))
  }

  #host(hop: NextHop, { name, preference }: Exchanger, { address, secure, canonical }: FoundAddress, mxSecure: boolean): Host {
    const host = { name, address, port: hop.port, preference, best: true }
    return this.#config.smtp_dns_support_level === 'dnssec' ? { ...host, dns: { mxSecure, secure, canonical } } : host
  }

  async #lookMx(name: string): Promise<SecureLookup<MxRecord>> {
    if (this.#config.smtp_dns_support_level === 'dnssec') return this.#net.lookupSecure(name, 'MX')
    const answer = await this.#net.lookupMx(name)
    return asInsecure(answer, name)
  }

  #choose(hop: NextHop, all: readonly Host[], failures: LookupFailures, ordering: Ordering): HostSearch {
    const { hosts, listed } = betterThanRelay(all, this.#isRelay(hop))
    if (hosts.length === 0 && listed) {
      // An exchanger of better preference than this relay exists, but no address of it was found.
      if (all.every((host) => !host.best)) return failed('4.4.4', `unable to find primary relay for ${hop.host}`, true)
      return failed('5.4.6', `mail for ${hop.host} loops back to myself`, true)
    }
    const allowed = hosts.filter((host) => this.#mayDial(hop, host.address))
    const [blocked] = hosts
    if (allowed.length === 0 && blocked !== undefined) {
      // A recipient's address literal always stays non-public, while a DNS record can be corrected. So the failure is permanent
      // for the literal only.
      return failed(
        isIP(hop.host) === 0 ? '4.4.4' : '5.4.4',
        `${blocked.name}[${blocked.address}] is not a public address; see smtp_allow_private_addresses`,
      )
    }
    return allowed.length === 0
      ? failedLookup(failures.result(hop.host))
      : { kind: 'found', hosts: inOrder(allowed, ordering), relayIsListed: listed }
  }

  /** Returns a test for hosts that are this relay. A configured next hop at a port other than 25 is this relay only at its own listeners. */
  #isRelay({ mx, origin, port }: NextHop): (host: Host) => boolean {
    const byExchanger = mx && (origin === 'recipient' || port === SMTP_PORT)
    return (host) => (byExchanger && this.#own.isExchanger(host)) || this.#own.isListener(host)
  }

  #mayDial(hop: NextHop, address: string): boolean {
    return hop.origin !== 'recipient' || this.#config.smtp_allow_private_addresses || isPublicAddress(address)
  }
}

const found = (hosts: readonly Host[]): HostSearch => ({ kind: 'found', hosts, relayIsListed: false })

/** MX records that name a host, best preference first. Fails for a null MX: the domain accepts no mail (RFC 7505). */
function usable(
  name: string,
  { records, secure }: Extract<SecureLookup<MxRecord>, { kind: 'found' }>,
  ordering: Ordering,
): Failed | Exchangers {
  if (records.some(({ exchange }) => exchange === '' || exchange === '.')) {
    return failed('5.1.0', `Domain ${name} does not accept mail (nullMX)`, true)
  }
  // An address in place of a name is used, as in Postfix.
  const hosts = records.filter(({ exchange }) => HOSTNAME.test(exchange))
  if (hosts.length === 0) return failed('5.4.4', `Name service error for ${name}: invalid host or domain name in MX record`)
  const list = hosts.map(({ exchange, preference }) => ({ name: exchange.toLowerCase().replace(/\.$/, ''), preference }))
  return { only: false, secure, list: byPreference(list, ordering) }
}
