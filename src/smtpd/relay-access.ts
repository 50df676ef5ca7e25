/** Who may send mail where (postfix smtpd_relay_restrictions = permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination). */
import { domainOf } from '../mail/address.ts'
import type { Config } from '../config/options.ts'
import { Networks } from '../config/networks.ts'
import { isRouted } from './path.ts'

export class RelayAccess {
  readonly #mynetworks: Networks
  readonly #domains: ReadonlySet<string>
  /** Addresses of our own. */
  readonly #ours: ReadonlySet<string>

  constructor(config: Pick<Config, 'mynetworks' | 'relay_domains' | 'myhostname' | 'myorigin' | 'double_bounce_sender'>) {
    this.#mynetworks = new Networks(config.mynetworks, 'mynetworks')
    this.#domains = new Set(config.relay_domains.map((domain) => domain.toLowerCase()))
    const { myhostname, myorigin, double_bounce_sender: doubleBounce } = config
    this.#ours = new Set(
      [`postmaster@${myhostname}`, `postmaster@${myorigin}`, `${doubleBounce}@${myhostname}`].map((one) => one.toLowerCase()),
    )
  }

  /** Is this one of our own clients? */
  trusts(address: string): boolean {
    return this.#mynetworks.has(address)
  }

  /** May everybody send to this recipient? Our postmaster hears everybody (RFC 5321 §4.5.1); what comes back to its notices ends here. */
  isOpen(recipient: string): boolean {
    if (this.#ours.has(recipient.toLowerCase())) return true
    return !isRouted(recipient) && this.#isRelayDomain(domainOf(recipient))
  }

  #isRelayDomain(domain: string): boolean {
    for (let name = domain; ; name = name.slice(name.indexOf('.') + 1)) {
      if (this.#domains.has(name)) return true
      if (!name.includes('.')) return false
    }
  }
}
