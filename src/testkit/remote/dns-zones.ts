/**
 * DNS of the remote network: the zones of the script. Every other domain has one mail exchanger, `mx.DOMAIN`, with an address of
 * its own.
 */
import type { Lookup, MxRecord, SecureLookup, SecureRecords, TlsaRecord } from '../../system/net.ts'
import type { Zone } from './rule.ts'
import { tlsaRecord } from './world-certificates.ts'

/** Networks for documentation (RFC 5737). Worlds with more hosts continue in 11.0.0.0/8; no packet leaves the process. */
const NETWORKS = ['192.0.2', '198.51.100', '203.0.113'] as const
const HOSTS_PER_NETWORK = 254

function addressNumber(index: number): string {
  const network = Math.floor(index / HOSTS_PER_NETWORK)
  const beyond = network - NETWORKS.length
  return `${NETWORKS[network] ?? `11.${(beyond >> 8) & 255}.${beyond & 255}`}.${(index % HOSTS_PER_NETWORK) + 1}`
}

/** Name below which the TLSA records of a host are, at port 25 (RFC 7672 §2.2). */
const SMTP_PORT = '_25._tcp.'

const NO_DATA = { kind: 'none', nxdomain: false } as const

const found = <T>(records: readonly T[]): Lookup<T> => (records.length > 0 ? { kind: 'found', records } : NO_DATA)

const isAddress = (text: string): boolean => /^\d+\.\d+\.\d+\.\d+$/.test(text) || text.includes(':')

/** Answers lookups, and finds the looked-up name of an address. */
export class DnsZones {
  readonly #zones = new Map<string, Zone>()
  readonly #addresses = new Map<string, string>()
  readonly #hosts = new Map<string, string>()
  readonly #domains = new Map<string, Set<string>>()
  /** TLSA records, as texts, that the exchangers of a signed domain have at port 25. */
  readonly #signed = new Map<string, readonly string[]>()

  constructor(zones: ReadonlyMap<string, Zone>) {
    for (const [name, zone] of zones) this.set(name, zone)
  }

  /** Sets the records of a name, for all later lookups. */
  set(name: string, zone: Zone): void {
    this.#zones.set(name, zone)
    for (const { exchange } of zone.mx) this.#serves(exchange, name)
    for (const address of [...zone.a, ...zone.aaaa]) this.#hosts.set(address, name)
    if (zone.mx.length === 0) this.#serves(name, name)
  }

  /** Makes the answers about a domain and its exchangers authentic, and gives each exchanger the TLSA records (`3 1 1`) at port 25. */
  sign(domain: string, records: readonly string[]): void {
    this.#signed.set(domain, records)
  }

  /** Names of the exchangers of a domain; empty without one. */
  exchangersOf(domain: string): readonly string[] {
    const answer = this.mx(domain)
    return answer.kind === 'found' ? answer.records.map(({ exchange }) => exchange).filter((name) => name !== '') : []
  }

  mx(domain: string): Lookup<MxRecord> {
    const zone = this.#zones.get(domain)
    if (zone !== undefined) return found(zone.mx)
    const exchange = `mx.${domain}`
    this.#serves(exchange, domain)
    return { kind: 'found', records: [{ preference: 10, exchange }] }
  }

  /** Records of a type with their authenticity, through the aliases of the zones. */
  secure<T extends keyof SecureRecords>(asked: string, type: T): SecureLookup<SecureRecords[T]> {
    const alias = this.#zones.get(asked)?.alias
    const secure = this.#isSecure(asked)
    if (alias !== undefined && type !== 'CNAME') {
      const answer = this.secure(alias, type)
      return answer.kind === 'failed' ? answer : { ...answer, secure: answer.secure && secure }
    }
    const answer = this.#records(asked, type) as Lookup<SecureRecords[T]>
    if (answer.kind === 'failed') return answer
    return answer.kind === 'none' ? { ...answer, secure } : { ...answer, secure, name: asked }
  }

  #records(name: string, type: keyof SecureRecords): Lookup<SecureRecords[keyof SecureRecords]> {
    switch (type) {
      case 'MX':
        return this.mx(name)
      case 'A':
        return this.addresses(name, 4)
      case 'AAAA':
        return this.addresses(name, 6)
      case 'TLSA':
        return found(this.#zones.get(name)?.tlsa ?? this.#tlsaOf(name))
      case 'CNAME': {
        const alias = this.#zones.get(name)?.alias
        return found(alias === undefined ? [] : [alias])
      }
    }
  }

  #isSecure(name: string): boolean {
    const own = this.#zones.get(name)?.secure
    if (own !== undefined) return own
    if (this.#signed.has(name) || this.#servesSigned(name).length > 0) return true
    const dot = name.indexOf('.')
    return dot >= 0 && this.#isSecure(name.slice(dot + 1))
  }

  /** Records of a signed domain at a name such as `_25._tcp.mx1.example.net`. */
  #tlsaOf(name: string): readonly TlsaRecord[] {
    const host = name.startsWith(SMTP_PORT) ? name.slice(SMTP_PORT.length) : ''
    return this.#servesSigned(host).flatMap((domain) => (this.#signed.get(domain) ?? []).flatMap((text) => tlsaRecord(text, host) ?? []))
  }

  /** The signed domains that have the host as an exchanger. */
  #servesSigned(host: string): readonly string[] {
    return [...(this.#domains.get(host) ?? [])].filter((domain) => this.#signed.has(domain))
  }

  txt(name: string): Lookup<string> {
    const zone = this.#zones.get(name)
    return zone === undefined ? { kind: 'none', nxdomain: true } : found(zone.txt ?? [])
  }

  names(address: string): Lookup<string> {
    const names = this.#zones.get(address)?.ptr ?? []
    return names.length > 0 ? { kind: 'found', records: names } : { kind: 'none', nxdomain: true }
  }

  addresses(host: string, family: 4 | 6): Lookup<string> {
    const zone = this.#zones.get(host)
    // A host named in an MX record needs no zone of its own.
    if (zone !== undefined) return found(family === 4 ? zone.a : zone.aaaa)
    return family === 4 ? { kind: 'found', records: [this.#addressOf(host)] } : NO_DATA
  }

  /** Name whose lookup returned the address; the address itself without such a lookup. */
  hostAt(address: string): string {
    return this.#hosts.get(address) ?? address
  }

  /** Domains for which a host accepts mail. */
  domainsOf(host: string): readonly string[] {
    const known = this.#domains.get(host)
    if (known !== undefined) return [...known]
    // The host was found without an MX lookup. `mx.DOMAIN` accepts mail for DOMAIN; any other name accepts mail for itself.
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
