/**
 * DNS as the far side has it: what the script says of a name, and for every other name one mail exchanger,
 * `mx.` before it, with an address of its own.
 */
import type { Lookup, MxRecord } from '../../delivery/net.ts'
import type { Zone } from './rule.ts'

/** The networks for documentation (RFC 5737), and what larger worlds go on with: nothing of it ever leaves the process. */
const NETWORKS = ['192.0.2', '198.51.100', '203.0.113'] as const
const HOSTS_PER_NETWORK = 254

function addressNumber(index: number): string {
  const network = Math.floor(index / HOSTS_PER_NETWORK)
  const beyond = network - NETWORKS.length
  return `${NETWORKS[network] ?? `11.${(beyond >> 8) & 255}.${beyond & 255}`}.${(index % HOSTS_PER_NETWORK) + 1}`
}

const NOBODY = { kind: 'none', nxdomain: false } as const

const found = <T>(records: readonly T[]): Lookup<T> => (records.length > 0 ? { kind: 'found', records } : NOBODY)

const isAddress = (text: string): boolean => /^\d+\.\d+\.\d+\.\d+$/.test(text) || text.includes(':')

export class Names {
  readonly #zones = new Map<string, Zone>()
  readonly #addresses = new Map<string, string>()
  readonly #hosts = new Map<string, string>()
  readonly #domains = new Map<string, Set<string>>()

  constructor(zones: ReadonlyMap<string, Zone>) {
    for (const [name, zone] of zones) this.tell(name, zone)
  }

  /** DNS says this of a name from now on. */
  tell(name: string, zone: Zone): void {
    this.#zones.set(name, zone)
    for (const { exchange } of zone.mx) this.#serves(exchange, name)
    for (const address of [...zone.a, ...zone.aaaa]) this.#hosts.set(address, name)
    if (zone.mx.length === 0) this.#serves(name, name)
  }

  mx(domain: string): Lookup<MxRecord> {
    const zone = this.#zones.get(domain)
    if (zone !== undefined) return found(zone.mx)
    const exchange = `mx.${domain}`
    this.#serves(exchange, domain)
    return { kind: 'found', records: [{ preference: 10, exchange }] }
  }

  addresses(host: string, family: 4 | 6): Lookup<string> {
    const zone = this.#zones.get(host)
    // A host that only stands in somebody's MX record needs no table of its own.
    if (zone !== undefined) return found(family === 4 ? zone.a : zone.aaaa)
    return family === 4 ? { kind: 'found', records: [this.#addressOf(host)] } : NOBODY
  }

  /** The name that was looked up to find the address; the address itself when nobody did. */
  hostAt(address: string): string {
    return this.#hosts.get(address) ?? address
  }

  /** The domains that a host takes mail for. */
  domainsOf(host: string): readonly string[] {
    const known = this.#domains.get(host)
    if (known !== undefined) return [...known]
    // Dialled without a look-up of MX records, the name says it just as well.
    return isAddress(host) ? [] : [host.startsWith('mx.') ? host.slice(3) : host]
  }

  #addressOf(host: string): string {
    const known = this.#addresses.get(host)
    if (known !== undefined) return known
    const address = addressNumber(this.#addresses.size)
    this.#addresses.set(host, address)
    this.#hosts.set(address, host)
    return address
  }

  #serves(host: string, domain: string): void {
    const domains = this.#domains.get(host) ?? new Set()
    this.#domains.set(host, domains.add(domain))
  }
}
