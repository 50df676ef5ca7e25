/** Maps addresses of outgoing mail by smtp_generic_maps (Postfix generic(5)): each address once, in envelope and header. */
import type { Config } from '../config/options.ts'
import { parseAddress } from '../mail/address-path.ts'
import { orcptOf, type EnvelopeRecipient } from '../mail/envelope.ts'
import { AddressMap } from './address-map.ts'
import { addressRules, type AddressSettings } from './lookup-rules.ts'
import { LookupFailed } from './lookup-table.ts'
import type { Tables } from './tables.ts'

export class GenericMaps {
  readonly #map: AddressMap
  readonly #myorigin: string

  private constructor(map: AddressMap, myorigin: string) {
    this.#map = map
    this.#myorigin = myorigin
  }

  /** The maps of a configuration; null without smtp_generic_maps. */
  static of(config: AddressSettings & Pick<Config, 'propagate_unmatched_extensions'>, tables: Tables): GenericMaps | null {
    const table = tables.get('smtp_generic_maps')
    if (table === undefined) return null
    const propagates = config.propagate_unmatched_extensions.includes('generic')
    return new GenericMaps(new AddressMap(table, addressRules(config), propagates), config.myorigin)
  }

  /** The header address in its quoted form. Throws LookupFailed. */
  header(address: string): string {
    return this.#map.all(address)?.[0] ?? address
  }

  /** The envelope address. Throws LookupFailed. */
  envelope(address: string): string {
    const [result] = this.#map.all(address) ?? []
    if (result === undefined || result === '') return result ?? address
    const mapped = parseAddress(result, this.#myorigin)
    if (mapped !== undefined) return mapped
    throw new LookupFailed(`${address} is mapped to ${JSON.stringify(result)}, which is not an address; correct the table`)
  }

  /** The recipient with its mapped address, and the original one as ORCPT unless there is one. Throws LookupFailed. */
  recipient<R extends EnvelopeRecipient>(recipient: R): R {
    const address = this.envelope(recipient.address)
    return address === recipient.address ? recipient : { ...recipient, address, orcpt: recipient.orcpt ?? orcptOf(recipient.address) }
  }
}
