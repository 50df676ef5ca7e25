/**
 * Recognizes this relay among hosts. A mail exchanger found in DNS is this relay, at any port, when its address belongs to this
 * machine or to `proxy_interfaces`, or its name is one of the relay's names (RFC 5321 §5.1). A configured next hop is this relay
 * only when the relay listens at that address and port, because another mail system may run on the machine.
 */
import type { Endpoint } from '../../system/net.ts'
import { parseNextHop } from '../../config/values/next-hop.ts'

const ANY = new Set(['0.0.0.0', '::', '*'])

export interface OwnAddresses {
  /** Addresses of listeners, as in smtpd_listen. */
  readonly listening: readonly string[]
  /** Addresses of this machine's interfaces. */
  readonly interfaces: () => readonly string[]
  /** proxy_interfaces: addresses from which mail is forwarded to this relay. */
  readonly proxies: readonly string[]
  /** Names of this relay, in lower case. */
  readonly names: ReadonlySet<string>
}

export class OwnHosts {
  readonly #own: OwnAddresses
  readonly #listeners: readonly { readonly host: string; readonly port: number }[]

  constructor(own: OwnAddresses) {
    this.#own = own
    this.#listeners = own.listening.flatMap((text) => parseNextHop(text, { port: 25, origin: 'recipient', mx: false }) ?? [])
  }

  /** True when a host found by its MX record is this relay. */
  isExchanger({ name, address }: { readonly name: string; readonly address: string }): boolean {
    const { names, proxies, interfaces } = this.#own
    return names.has(name.toLowerCase()) || proxies.includes(address) || interfaces().includes(address)
  }

  /** True when the endpoint is a listener of this relay. Applies to hosts named in the configuration, such as relayhost. */
  isListener({ address, port }: Endpoint): boolean {
    const here = this.#listeners.filter((at) => at.port === port)
    return here.some((at) => at.host === address) || (here.some((at) => ANY.has(at.host)) && this.#own.interfaces().includes(address))
  }
}
