/** Users that own a sender address (Postfix smtpd_sender_login_maps). */
import { AddressMap, type AddressRules } from '../rewriting/address-map.ts'
import type { LookupTable } from '../rewriting/lookup-table.ts'

export class SenderLogins {
  readonly #owners: AddressMap

  constructor(table: LookupTable, rules: AddressRules) {
    this.#owners = new AddressMap(table, rules, false)
  }

  /** Users that own the address: the value of its entry, split at commas and blanks. Empty when no user owns it. Throws LookupFailed. */
  ownersOf(address: string): readonly string[] {
    if (address === '') return []
    const names = this.#owners.find(address)?.value.split(/[\s,]+/) ?? []
    return names.filter((name) => name !== '')
  }
}
