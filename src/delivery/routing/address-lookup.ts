/**
 * Looks up the addresses of a host (smtp_host_lookup, Postfix smtp_addr.c): by DNS, by the resolver of the machine, or by DNS first
 * and by that resolver when DNS has no address. Only families of inet_protocols are looked up.
 */
import { isIPv6 } from 'node:net'
import type { Config } from '../../config/options.ts'
import { asInsecure, type Lookup, type Net, type SecureLookup } from '../../system/net.ts'

type Unfound = Exclude<Lookup<unknown>, { kind: 'found' }>

/** Status and reason of a host without an address. */
export interface AddressFailure {
  readonly status: string
  readonly reason: string
}

export function nameServiceError(name: string, type: string, answer: Unfound): string {
  const text =
    answer.kind === 'none' ? (answer.nxdomain ? 'Host not found' : 'Host found but no data record of requested type') : failureText(answer)
  return `Host or domain name not found. Name service error for name=${name} type=${type}: ${text}`
}

const failureText = ({ soft, reason }: { readonly soft: boolean; readonly reason: string }): string =>
  `${soft ? 'Host not found, try again' : 'Look-up refused'} (${reason})`

/** Texts of getaddrinfo(3), as Postfix logs them. */
const TEXTS: Readonly<Record<string, string>> = {
  EAI_AGAIN: 'Temporary failure in name resolution',
  EAI_FAIL: 'Non-recoverable failure in name resolution',
  EAI_MEMORY: 'Memory allocation failure',
}

/** Status and reason of a host that the resolver of the machine does not find. */
function hostFailure(name: string, answer: Unfound): AddressFailure {
  const reason = (text: string) => `unable to look up host ${name}: ${text}`
  if (answer.kind === 'none') return { status: '5.4.4', reason: reason('Name or service not known') }
  const status = answer.reason === 'EAI_AGAIN' ? '4.4.4' : answer.soft ? '4.3.0' : '5.3.0'
  return { status, reason: reason(TEXTS[answer.reason] ?? answer.reason) }
}

/** Failed lookups of addresses. A temporary failure takes precedence over permanent failures. */
export class LookupFailures {
  #worst: { readonly rank: number; readonly failure: AddressFailure } | undefined

  addDns(name: string, type: string, answer: Unfound): void {
    const reason = nameServiceError(name, type, answer)
    if (answer.kind === 'none') this.put(1, { status: '5.4.4', reason })
    else this.put(answer.soft ? 3 : 2, { status: answer.soft ? '4.4.3' : '5.4.3', reason })
  }

  addHost(name: string, answer: Unfound): void {
    const failure = hostFailure(name, answer)
    this.put(failure.status.startsWith('4') ? 3 : 1, failure)
  }

  put(rank: number, failure: AddressFailure): void {
    if (this.#worst === undefined || rank > this.#worst.rank) this.#worst = { rank, failure }
  }

  result(name: string): AddressFailure {
    return this.#worst?.failure ?? { status: '5.4.4', reason: `Host or domain name not found: ${name}` }
  }
}

export interface FoundAddress {
  readonly address: string
  /** True when the answer was authentic, with smtp_dns_support_level = dnssec. */
  readonly secure: boolean
  /** Name at the end of the CNAME records. */
  readonly canonical: string
}

const VERSIONS = { ipv4: 4, ipv6: 6 } as const
const TYPES = { ipv4: 'A', ipv6: 'AAAA' } as const

export class AddressLookup {
  readonly #net: Net
  readonly #methods: Config['smtp_host_lookup']
  readonly #families: Config['inet_protocols']
  readonly #dnssec: boolean

  constructor(net: Net, config: Pick<Config, 'smtp_host_lookup' | 'inet_protocols' | 'smtp_dns_support_level'>) {
    this.#net = net
    this.#methods = config.smtp_host_lookup
    this.#families = config.inet_protocols
    this.#dnssec = config.smtp_dns_support_level === 'dnssec'
  }

  /** Maximum number of queries for one host. */
  get queries(): number {
    return (this.#methods.includes('dns') ? this.#families.length : 0) + (this.#methods.includes('native') ? 1 : 0)
  }

  /** True when the address is of a family of inet_protocols. */
  isEnabled(address: string): boolean {
    return this.#families.includes(isIPv6(address) ? 'ipv6' : 'ipv4')
  }

  /** The address that an MX record has in place of a name; none of a family that is not enabled. */
  literal(address: string): readonly FoundAddress[] {
    return this.isEnabled(address) ? [{ address, secure: false, canonical: address }] : []
  }

  /** The addresses of a host. When the list is empty, a failure was added to `failures`. */
  async find(name: string, failures: LookupFailures): Promise<readonly FoundAddress[]> {
    const native = this.#methods.includes('native')
    if (!this.#methods.includes('dns')) return this.#byMachine(name, failures)
    const answers = await Promise.all(this.#families.map(async (family) => [family, await this.#look(name, family)] as const))
    const addresses = answers.flatMap(([, answer]) =>
      answer.kind === 'found' ? answer.records.map((address) => ({ address, secure: answer.secure, canonical: answer.name })) : [],
    )
    if (addresses.length > 0) return addresses
    // A failed query is no answer: the machine is asked only about hosts that DNS does not have.
    if (native && answers.every(([, { kind }]) => kind === 'none')) return this.#byMachine(name, failures)
    for (const [family, answer] of answers) if (answer.kind !== 'found') failures.addDns(name, TYPES[family], answer)
    return []
  }

  async #look(name: string, family: 'ipv4' | 'ipv6'): Promise<SecureLookup<string>> {
    if (this.#dnssec) return this.#net.lookupSecure(name, TYPES[family])
    const answer = await this.#net.lookupAddresses(name, VERSIONS[family])
    return asInsecure(answer, name)
  }

  async #byMachine(name: string, failures: LookupFailures): Promise<readonly FoundAddress[]> {
    const answer = await this.#net.lookupHost(name)
    if (answer.kind !== 'found') failures.addHost(name, answer)
    const addresses = answer.kind === 'found' ? answer.records.filter((address) => this.isEnabled(address)) : []
    if (answer.kind === 'found' && addresses.length === 0) failures.put(1, { status: '5.4.4', reason: `${name}: host not found` })
    return addresses.map((address) => ({ address, secure: false, canonical: name }))
  }
}
