/**
 * Finds the hosts behind a next hop (RFC 5321 §5.1, RFC 7505, postfix smtp_addr): mail exchangers, their addresses, and
 * what it means when there are none. Asks lazily and never more than ten questions per attempt; gives addresses, so that
 * what was checked is what is dialled.
 */
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import type { Config } from '../config/options.ts'
import { beforeOurselves, byPreference, inOrder, type Host, type Ordering } from './host-list.ts'
import { ourselves } from './own-address.ts'
import type { Lookup, MxRecord, Net } from './net.ts'
import type { NextHop } from './next-hop.ts'
import { isPublicAddress } from './public-address.ts'

/** DNS questions one attempt may still ask; shared by all its next hops. */
export interface QueryBudget {
  left: number
}

export const QUERIES_PER_ATTEMPT = 10

export type HostSearch =
  | { readonly kind: 'found'; readonly hosts: readonly Host[]; readonly weAreListed: boolean }
  | {
      readonly kind: 'failed'
      readonly status: string
      readonly reason: string
      /** No other host can help: the domain takes no mail, or mail for it comes back to us. */
      readonly final: boolean
    }

type Failed = Extract<HostSearch, { kind: 'failed' }>

const failed = (status: string, reason: string, final = false): Failed => ({ kind: 'failed', status, reason, final })

interface Exchanger {
  readonly name: string
  readonly preference: number
}

const OUT_OF_QUESTIONS = 'too many DNS look-ups for one delivery attempt'
const HOSTNAME = /^(?=.{1,253}\.?$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?$/i

function nameServiceError(name: string, type: string, found: Exclude<Lookup<unknown>, { kind: 'found' }>): string {
  const said =
    found.kind === 'none' ? (found.nxdomain ? 'Host not found' : 'Host found but no data record of requested type') : failure(found)
  return `Host or domain name not found. Name service error for name=${name} type=${type}: ${said}`
}

const failure = ({ soft, reason }: { readonly soft: boolean; readonly reason: string }): string =>
  `${soft ? 'Host not found, try again' : 'Look-up refused'} (${reason})`

/** What it means that none of the look-ups found an address. A passing failure outweighs lasting ones. */
class Misses {
  #worst: { readonly rank: number; readonly failed: Failed } | undefined

  add(name: string, type: string, found: Exclude<Lookup<unknown>, { kind: 'found' }>): void {
    const reason = nameServiceError(name, type, found)
    if (found.kind === 'none') this.put(1, failed('5.4.4', reason))
    else this.put(found.soft ? 3 : 2, failed(found.soft ? '4.4.3' : '5.4.3', reason))
  }

  put(rank: number, miss: Failed): void {
    if (this.#worst === undefined || rank > this.#worst.rank) this.#worst = { rank, failed: miss }
  }

  verdict(name: string): Failed {
    return this.#worst?.failed ?? failed('5.4.4', `Host or domain name not found: ${name}`)
  }
}

export class HostFinder {
  readonly #net: Net
  readonly #config: Config
  readonly #draw: () => number
  readonly #isOurs: (host: Host) => boolean

  constructor({ net, config, draw }: { readonly net: Net; readonly config: Config; readonly draw: () => number }) {
    this.#net = net
    this.#config = config
    this.#draw = draw
    this.#isOurs = ourselves([...config.smtpd_listen, ...config.smtpd.map(({ address }) => address)], () => net.ownAddresses?.() ?? [])
  }

  async find(hop: NextHop, addressLimit: number, budget: QueryBudget): Promise<HostSearch> {
    const ordering = this.#ordering(addressLimit)
    if (hop.host.startsWith('/')) return found([{ name: hop.host, address: hop.host, port: 0, preference: 0, best: true }])
    if (isIP(hop.host) !== 0) return this.#choose(hop, [this.#host(hop, hop.host, hop.host, 0)], new Misses(), ordering)
    const name = domainToASCII(hop.host)
    if (name === '' || !HOSTNAME.test(name)) return failed('5.4.4', `${hop.host} is not the name of a host or domain`)
    const exchangers = hop.mx ? await this.#exchangers(name, ordering, budget) : { only: true, list: [{ name, preference: 0 }] }
    if ('kind' in exchangers) return exchangers
    const misses = new Misses()
    const addresses = await this.#addresses(hop, exchangers.list, misses, ordering, budget)
    const search = this.#choose(hop, addresses, misses, ordering)
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

  /** The mail exchangers of a domain, best first; the domain itself when it has none. */
  async #exchangers(name: string, ordering: Ordering, budget: QueryBudget): Promise<Failed | { only: boolean; list: Exchanger[] }> {
    const itself = { only: true, list: [{ name, preference: 0 }] }
    if (budget.left-- <= 0) return failed('4.4.3', OUT_OF_QUESTIONS)
    const answer = await this.#net.lookupMx(name)
    switch (answer.kind) {
      case 'none':
        return itself
      case 'failed':
        if (this.#config.ignore_mx_lookup_error) return itself
        return failed(answer.soft ? '4.4.3' : '5.4.3', nameServiceError(name, 'MX', answer))
      case 'found':
        return usable(name, answer.records, ordering)
    }
  }

  /** Addresses of exchangers, best first, until there are enough or no question is left. */
  async #addresses(
    hop: NextHop,
    exchangers: readonly Exchanger[],
    misses: Misses,
    { limit }: Ordering,
    budget: QueryBudget,
  ): Promise<Host[]> {
    const hosts: Host[] = []
    let group = exchangers[0]?.preference
    for (const { name, preference } of exchangers) {
      // Only between preferences: hosts of equal preference share the load, and one of them may be ourselves.
      if (limit > 0 && hosts.length >= limit && preference !== group) break
      group = preference
      if (budget.left < 2) {
        misses.put(3, failed('4.4.3', OUT_OF_QUESTIONS))
        break
      }
      budget.left -= 2
      const answers = await Promise.all([this.#net.lookupAddresses(name, 4), this.#net.lookupAddresses(name, 6)])
      hosts.push(...this.#known(hop, name, preference, answers, misses))
    }
    const best = exchangers[0]?.preference ?? 0
    return hosts.map((host) => ({ ...host, best: host.preference === best }))
  }

  #known(hop: NextHop, name: string, preference: number, answers: readonly Lookup<string>[], misses: Misses): Host[] {
    const hosts = answers.flatMap((answer) => (answer.kind === 'found' ? answer.records : []))
    if (hosts.length === 0) {
      answers.forEach((answer, i) => answer.kind !== 'found' && misses.add(name, i === 0 ? 'A' : 'AAAA', answer))
    }
    return hosts.map((address) => this.#host(hop, name, address, preference))
  }

  #host(hop: NextHop, name: string, address: string, preference: number): Host {
    return { name, address, port: hop.port, preference, best: true }
  }

  #choose(hop: NextHop, all: readonly Host[], misses: Misses, ordering: Ordering): HostSearch {
    const { hosts, listed } = beforeOurselves(all, this.#isOurs)
    if (hosts.length === 0 && listed) {
      // A better exchanger than ourselves exists, only its address cannot be found now.
      if (all.every((host) => !host.best)) return failed('4.4.4', `unable to find primary relay for ${hop.host}`, true)
      return failed('5.4.6', `mail for ${hop.host} loops back to myself`, true)
    }
    const open = hosts.filter((host) => this.#mayDial(hop, host.address))
    const [shut] = hosts
    if (open.length === 0 && shut !== undefined) {
      return failed('5.4.4', `${shut.name}[${shut.address}] is not a public address; see smtp_allow_private_addresses`)
    }
    return open.length === 0 ? misses.verdict(hop.host) : { kind: 'found', hosts: inOrder(open, ordering), weAreListed: listed }
  }

  #mayDial(hop: NextHop, address: string): boolean {
    return hop.origin !== 'recipient' || this.#config.smtp_allow_private_addresses || isPublicAddress(address)
  }
}

const found = (hosts: readonly Host[]): HostSearch => ({ kind: 'found', hosts, weAreListed: false })

/** MX records that name a host, best first; a null MX says that the domain takes no mail (RFC 7505). */
function usable(name: string, records: readonly MxRecord[], ordering: Ordering): Failed | { only: boolean; list: Exchanger[] } {
  if (records.some(({ exchange }) => exchange === '' || exchange === '.')) {
    return failed('5.1.0', `Domain ${name} does not accept mail (nullMX)`, true)
  }
  const hosts = records.filter(({ exchange }) => HOSTNAME.test(exchange) && isIP(exchange) === 0)
  if (hosts.length === 0) return failed('5.4.4', `Name service error for ${name}: invalid host or domain name in MX record`)
  const list = hosts.map(({ exchange, preference }) => ({ name: exchange.toLowerCase().replace(/\.$/, ''), preference }))
  return { only: false, list: byPreference(list, ordering) }
}
