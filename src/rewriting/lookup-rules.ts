/** Facts of the relay that lookups of addresses use. */
import type { Config } from '../config/options.ts'
import type { AddressRules } from './address-map.ts'

export type AddressSettings = Pick<
  Config,
  'myorigin' | 'myhostname' | 'mydomain' | 'append_dot_mydomain' | 'double_bounce_sender' | 'recipient_delimiter'
>

export function addressRules(config: AddressSettings): AddressRules {
  const { myorigin, myhostname, mydomain, double_bounce_sender: doubleBounce } = config
  return {
    delimiters: config.recipient_delimiter,
    myorigin,
    localDomains: new Set([myorigin, myhostname, 'localhost'].map((domain) => domain.toLowerCase())),
    parent: config.append_dot_mydomain ? mydomain : null,
    whole: new Set(['postmaster', 'mailer-daemon', doubleBounce.toLowerCase()]),
  }
}
