/**
 * Recognizes this relay among hosts: by an address and port at which it listens. Another mail server may run at other addresses and ports of
 * the same machine. A mail exchanger found in DNS is this relay too when its address belongs to `proxy_interfaces`, and when it has the
 * relay's name and an address of another machine, which NAT may forward to a listener at the same port (RFC 5321 §5.1).
 */
import { isIPv4, isIPv6, SocketAddress } from 'node:net'
import type { ListenOptions } from '../../system/net.ts'
import type { Host } from './host-order.ts'

interface OwnAddresses {
  readonly listening: readonly ListenOptions[]
  /** Addresses of this machine's interfaces. */
  readonly interfaces: () => readonly string[]
  /** proxy_interfaces: addresses from which mail is forwarded to this relay. */
  readonly proxies: readonly string[]
  /** Names of this relay, in lower case. */
  readonly names: ReadonlySet<string>
}

type Place = Pick<Host, 'name' | 'address' | 'port'>

export class OwnHosts {
  readonly #own: OwnAddresses

  constructor(own: OwnAddresses) {
    this.#own = own
  }

  /** True when a host found by its MX record is this relay. */
  isExchanger(host: Place): boolean {
    const { proxies, names } = this.#own
    if (proxies.includes(host.address) || this.isListener(host)) return true
    return names.has(host.name.toLowerCase()) && !this.#isHere(host.address) && this.#isReachable(host.port)
  }

  /** True when this relay listens at the address and port. */
  isListener({ name, address, port }: Place): boolean {
    return this.#own.listening.some((at) => at.port === port && (this.#covers(at, address) || at.address === name))
  }

  #covers(at: ListenOptions, address: string): boolean {
    const isAny = (at.address === '0.0.0.0' && isIPv4(address)) || (at.address === '::' && (at.ipv6Only !== true || isIPv6(address)))
    return isAny ? this.#isHere(address) : at.address === address || canonical(at.address) === canonical(address)
  }

  #isHere(address: string): boolean {
    return isLoopback(address) || this.#own.interfaces().some((own) => canonical(own) === canonical(address))
  }

  /** True when other machines can reach a listener at the port. */
  #isReachable(port: number): boolean {
    return this.#own.listening.some((at) => at.port === port && at.address !== 'localhost' && !isLoopback(at.address))
  }
}

const isLoopback = (address: string): boolean => (isIPv4(address) && address.startsWith('127.')) || canonical(address) === '::1'

/** The address of IPv6 in its shortest form; other text is unchanged. */
const canonical = (address: string): string => (isIPv6(address) ? new SocketAddress({ address, family: 'ipv6' }).address : address)
