/** The properties of clients and recipients on which smtpd_relay_restrictions depend. */
import { domainOf } from '../../mail/address.ts'
import { DoubleBounce } from '../../config/double-bounce.ts'
import type { Config } from '../../config/options.ts'
import { Networks } from '../../config/values/networks.ts'
import { isRouted } from '../../mail/address-path.ts'

export class RelayPolicy {
  readonly #mynetworks: Networks
  readonly #xclientHosts: Networks
  readonly #xforwardHosts: Networks
  readonly #bareNewlineExclusions: Networks
  readonly #domains: ReadonlySet<string>
  /** Recipient addresses of the relay itself. */
  readonly #own: ReadonlySet<string>

  constructor(
    config: Pick<
      Config,
      | 'mynetworks'
      | 'relay_domains'
      | 'myhostname'
      | 'myorigin'
      | 'double_bounce_sender'
      | 'smtpd_authorized_xclient_hosts'
      | 'smtpd_authorized_xforward_hosts'
      | 'smtpd_forbid_bare_newline_exclusions'
    >,
  ) {
    this.#mynetworks = new Networks(config.mynetworks, 'mynetworks')
    this.#xclientHosts = new Networks(config.smtpd_authorized_xclient_hosts, 'smtpd_authorized_xclient_hosts')
    this.#xforwardHosts = new Networks(config.smtpd_authorized_xforward_hosts, 'smtpd_authorized_xforward_hosts')
    const { smtpd_forbid_bare_newline_exclusions: exclusions } = config
    this.#bareNewlineExclusions = new Networks(exclusions, 'smtpd_forbid_bare_newline_exclusions')
    this.#domains = new Set(config.relay_domains.map((domain) => domain.toLowerCase()))
    const { myhostname, myorigin } = config
    this.#own = new Set(
      [`postmaster@${myhostname}`, `postmaster@${myorigin}`, new DoubleBounce(config).address].map((one) => one.toLowerCase()),
    )
  }

  /** True for clients in mynetworks. */
  trusts(address: string): boolean {
    return this.#mynetworks.has(address)
  }

  /** True for clients that may name another client by XCLIENT. */
  mayXclient(address: string): boolean {
    return this.#xclientHosts.has(address)
  }

  /** True for clients that may describe mail by XFORWARD. */
  mayXforward(address: string): boolean {
    return this.#xforwardHosts.has(address)
  }

  /** True for clients that may end lines with a bare LF. */
  mayEndLinesBare(address: string): boolean {
    return this.#bareNewlineExclusions.has(address)
  }

  /**
   * True for a recipient to whom every client may send: an address in relay_domains, the postmaster (RFC 5321 §4.5.1), or
   * double_bounce_sender, which receives failure notices about notices.
   */
  isOpen(recipient: string): boolean {
    if (this.#own.has(recipient.toLowerCase())) return true
    return this.isInRelayDomains(recipient)
  }

  isInRelayDomains(recipient: string): boolean {
    if (isRouted(recipient)) return false
    for (let name = domainOf(recipient); ; name = name.slice(name.indexOf('.') + 1)) {
      if (this.#domains.has(name)) return true
      if (!name.includes('.')) return false
    }
  }
}
